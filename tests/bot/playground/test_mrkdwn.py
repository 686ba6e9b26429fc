"""What people type becomes Slack's text, and mentions in what an app sends are found."""

import pytest

from bot.playground.mrkdwn import mentioned, named, pings, typed

USERS = {"ana": "U1", "penstock": "U2", "ana-b.c": "U3"}
CHANNELS = {"ops": "C1"}


@pytest.mark.parametrize(
    ("text", "slacks"),
    [
        ("@penstock hi", "<@U2> hi"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("(@ana), @ana-b.c. @nobody", "(<@U1>), <@U3>. @nobody"),
        ("mail ana@ana.example", "mail ana@ana.example"),
        ("see #ops and #none", "see <#C1|ops> and #none"),
        ("@here and @channels", "<!here> and @channels"),
        ("https://a.example/x?a=1&b=@ana.", "<https://a.example/x?a=1&amp;b=@ana>."),
        ("<@U1> typed by hand", "&lt;@U1&gt; typed by hand"),
        ("&lt; is an entity", "&amp;lt; is an entity"),
    ],
)
def test_typing_becomes_slacks_text(text: str, slacks: str) -> None:
    assert typed(text, users=USERS, channels=CHANNELS) == slacks


def test_a_command_names_its_mentions() -> None:
    assert named("@ana #ops", users=USERS, channels=CHANNELS) == "<@U1|ana> <#C1|ops>"


def test_a_mention_is_of_that_user_alone() -> None:
    assert mentioned("hey <@U2|penstock>", "U2")
    assert not mentioned("hey <@U22>", "U2")


def test_mentions_are_found_wherever_slack_reads_them() -> None:
    blocks = [
        {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": "<!channel>"}, {"type": "plain_text", "text": "<!here>"}],
        },
        {"type": "rich_text", "elements": [{"type": "user", "user_id": "U9"}, {"type": "broadcast", "range": "here"}]},
    ]
    assert list(pings("<@U1|x>", blocks, links_names="")) == ["<@U1>", "<!channel>", "<@U9>", "<!here>"]
    assert list(pings("@channel", [], links_names="")) == []
    assert list(pings("@channel", [], links_names="full")) == ["<!channel>"]
