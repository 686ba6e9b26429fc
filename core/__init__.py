"""Answers from indexed passages. Knows neither Slack nor file formats."""
