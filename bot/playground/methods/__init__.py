"""The Web API's methods, a module per family: each takes the installation and the arguments, and answers or refuses."""
