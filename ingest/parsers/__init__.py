"""Readers of file formats. They run inside the cage, one page a call, and know nothing of documents, stores or jobs."""
