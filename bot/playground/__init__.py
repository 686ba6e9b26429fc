"""A strict local Slack that the unmodified slack-bolt and slack-sdk talk to: the demo's stage and the bot's test bed.

Knows Slack's rules; knows nothing of answers, documents or the index.
"""
