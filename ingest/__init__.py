"""Bytes -> chunks in the index. Knows neither Slack nor how questions are answered."""
