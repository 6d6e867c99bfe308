"""What well-known services are for, for those that cannot be asked themselves: switched off, or never started. Pure.

Written for this project from general knowledge; words of which two in a query say that it may be about the service.
"""

from __future__ import annotations

import re

_SERVICES = """
airtable base table record spreadsheet
asana task project todo
calendar event meeting appointment schedule calendar
confluence wiki page space
datadog metric monitor dashboard log
discord chat channel message post server
drive file folder document share
email mail email inbox message
figma design frame mockup
github repository issue pull request commit branch code
gitlab repository issue merge request commit branch pipeline
gmail mail email inbox message
jira issue ticket sprint board
linear issue ticket cycle project
mongodb database collection document query
mysql database table sql query
notion page note wiki workspace
outlook mail email inbox message calendar
postgres database table sql query
redis cache key value
sentry error exception crash stack trace
slack chat channel message post workspace thread
spotify music song playlist track
sqlite database table sql query
stripe payment invoice customer subscription refund
teams chat channel message post meeting
telegram chat channel message post
todoist task todo project
trello board card list
twilio sms text message
whatsapp chat message group
youtube video channel playlist transcript
zoom meeting video call
"""
FAMILIAR: dict[str, str] = {
    name: about for name, _, about in (line.partition(" ") for line in _SERVICES.strip().splitlines())
}
_WORDS = re.compile(r"[^\W_]+")


def known_for(server: str) -> str:
    """Return what a server of this name is known for, as words; empty if nothing is known."""
    return " ".join(FAMILIAR.get(word, "") for word in _WORDS.findall(server.casefold())).strip()
