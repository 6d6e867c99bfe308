"""A made-up catalogue of honest tools: 1,500 on about 70 servers, the same ones for the same seed.

Servers, things and verbs are from lists of our own; what a description adds is drawn from pools, so that its last
sentence is said of that tool only. Everything is made from words that real servers use, in the styles they use.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from benchmarks.search import Tool

SERVERS = """
acmebill: invoice, payment, refund, subscription, coupon, tax rate, payout
parcelway: shipment, parcel, label, pickup, carrier rate, customs form, tracking event
deskflow: ticket, agent, macro, queue, satisfaction survey, escalation, canned reply
gitgrove: repository, pull request, branch, commit, release, code review, deploy key
buildyard: pipeline, build job, artifact, runner, test report, cache, trigger
cloudpier: virtual machine, disk snapshot, load balancer, firewall rule, dns record, region, ssh key
kubedeck: pod, deployment, namespace, config map, ingress, helm chart, node
logharbor: log stream, alert rule, dashboard, saved query, retention policy, parser, anomaly
pagebell: incident, on-call schedule, responder, postmortem, status page, maintenance window, runbook
mailroost: email, mailing list, draft, attachment, inbox filter, signature, autoresponder
chatterbox: channel, message, thread, reaction, emoji, direct message, workspace member
daybook: calendar event, reminder, meeting room, invitation, time zone, recurring appointment, holiday
notequill: note, notebook, tag, template, backlink, highlight, outline
taskloom: task, project, milestone, checklist, sprint, dependency, time entry
docsmith: document, paragraph, footnote, comment, revision, table of contents, glossary
sheetmill: spreadsheet, worksheet, cell range, pivot table, formula, chart, named range
slidekite: slide, presentation, speaker note, theme, transition, layout, handout
pdfpress: pdf page, watermark, form field, bookmark, annotation, redaction, digital signature
drivenest: file, folder, shared link, permission, version history, trash item, quota
photolab: photo, album, filter, face, caption, collage, raw image
clipreel: video, subtitle, thumbnail, playlist, transcript, watch party, chapter
tunebox: song, album cover, lyrics, concert, podcast episode, radio station, equalizer preset
mapwise: route, place, traffic jam, elevation, isochrone, street view, geofence
skycast: weather forecast, storm warning, air quality, tide, sunrise, pollen count, climate normal
flywing: flight, boarding pass, seat map, baggage claim, airport lounge, fare alert, layover
innkeep: hotel, reservation, room rate, guest, housekeeping order, check-in, minibar charge
tablefor: restaurant, menu, table booking, dish, waitlist, food allergy, tip
cartmint: product, shopping cart, order, discount, inventory level, product review, wishlist
leadwell: lead, contact, deal, sales forecast, account, call log, territory
adspark: campaign, ad group, keyword bid, audience, conversion goal, creative, landing page
postpilot: social post, follower, hashtag, scheduled story, mention, influencer, poll
formcraft: form, submission, question, conditional rule, answer export, quiz, respondent
hirenet: job posting, candidate, interview, offer letter, resume, referral, hiring stage
staffbook: employee, payslip, leave request, benefit plan, performance review, org chart, timesheet
ledgerly: journal entry, bank account, balance sheet, expense report, budget, vendor bill, fiscal year
stockeye: stock quote, portfolio, dividend, watchlist, earnings call, option chain, market index
coinvault: wallet, blockchain transaction, token balance, gas fee, smart contract, staking reward, exchange rate
lawdocket: contract, clause, court case, filing deadline, legal hold, statute, settlement
medichart: patient, prescription, lab result, allergy, vaccination, diagnosis code, referral letter
fittrail: workout, heart rate, step count, sleep session, meal, weight goal, training plan
classroomly: course, assignment, grade, student, lecture, attendance record, syllabus
paperseek: research paper, citation, author, preprint, journal, abstract, dataset reference
bookshelf: book, library loan, isbn, reading list, publisher, book club, audiobook
newswire: headline, news article, press release, topic feed, fact check, editorial, byline
gamehall: player, leaderboard, match, achievement, guild, loot item, tournament
homehub: light, thermostat, door lock, scene, motion sensor, smart plug, camera feed
carlink: vehicle, charging session, tire pressure, trip log, fuel station, service appointment, parking spot
farmplot: field, crop, soil sample, irrigation valve, harvest, livestock, seed lot
factorise: work order, machine, spare part, quality check, assembly line, batch, downtime
shelfscan: warehouse, bin location, barcode, stock count, pallet, replenishment, forklift
sqlpad: database table, sql query, index, stored procedure, view definition, foreign key, query plan
docstore: collection, json document, aggregation, shard, change stream, geo index, ttl policy
cachefox: cache key, hash field, sorted set, pub sub topic, lua script, eviction policy, stream group
searchbeam: search index, synonym list, facet, analyzer, relevance rule, autocomplete, crawl
vectorbay: embedding, vector collection, nearest neighbour, metadata filter, chunk, similarity score, namespace key
modelforge: training run, model checkpoint, hyperparameter, evaluation, experiment, inference endpoint, feature store
browserbot: web page, browser tab, screenshot, cookie, form input, network request, dom element
scrapejet: website, sitemap, link, html table, proxy, crawl schedule, robots file
apiprobe: http request, mock server, environment variable, test collection, response schema, webhook, rate limit
keyring: secret, encryption key, certificate, password policy, access token, rotation, audit trail
userport: user, role, group, login session, sso connection, mfa device, api client
scanward: vulnerability, port scan, malware sample, firewall log, threat feed, exploit, compliance report
termcast: shell command, terminal session, environment path, process, cron job, disk usage, symlink
langbridge: translation, language, phrase book, glossary term, dialect, transliteration, spelling
voicewave: speech recording, voice, pronunciation, dictation, phone call, voicemail, audio clip
pixelmint: vector icon, color palette, font, gradient, sprite sheet, svg path, mockup
blueprintly: floor plan, beam, material estimate, cad drawing, building permit, elevation view, site survey
civicdata: census tract, election result, zoning map, public budget, council meeting, road closure, permit application
genelab: gene, protein, dna sequence, variant, pathway, assay, cell line
startrack: satellite, star chart, exoplanet, launch window, telescope, orbit, meteor shower
"""
"""A server and its things a line. The names are invented."""

VERBS = {
    "create": "Create a new {thing}",
    "list": "List every {thing} that matches a filter",
    "get": "Get the details of one {thing}",
    "update": "Update an existing {thing}",
    "delete": "Delete a {thing} for good",
    "search": "Search for a {thing} by text",
    "export": "Export a {thing} to a file",
    "archive": "Archive a {thing} that is not used any more",
    "compare": "Compare one {thing} with another",
    "share": "Share a {thing} with other people",
    "validate": "Validate a {thing} before it is used",
    "duplicate": "Duplicate a {thing} with all its settings",
}
PARAMETERS = (
    "limit",
    "cursor",
    "filter",
    "format",
    "language",
    "owner",
    "reason",
    "status",
    "since",
    "notify",
    "dry_run",
)
_WORDS = """
amber basalt cobalt delta ember fjord garnet harbor indigo juniper kelvin lagoon maple nectar onyx pebble quartz
raven saffron tundra umber velvet willow xenon yonder zephyr acorn birch cedar dune elm fern grove heath iris jade
"""
DETAILS = tuple(_WORDS.split())
"""Words that stand for the particulars a real description has."""
TOOLS_PER_THING = 3

Style = Callable[[Sequence[str]], str]
STYLES: tuple[Style, ...] = (
    "_".join,
    "_".join,
    "-".join,
    lambda parts: parts[0] + "".join(part.capitalize() for part in parts[1:]),
)


def honest(seed: int = 1, tools: int = 1500) -> list[Tool]:
    """Return so many honest tools: the first 1,470 of 70 servers, more of servers like these."""
    out: list[Tool] = []
    turn = 0
    while len(out) < tools:
        out += _once(random.Random(seed + turn), turn)
        turn += 1
    return out[:tools]


def things() -> Mapping[str, Sequence[str]]:
    """Return server -> its things, as they are said."""
    lines = [line.partition(":") for line in SERVERS.strip().splitlines()]
    return {server: [thing.strip() for thing in listed.split(",")] for server, _, listed in lines}


def _once(chance: random.Random, turn: int) -> list[Tool]:
    """Return the tools of all servers; in later turns those of other servers, whose things have one more word."""
    out: list[Tool] = []
    for server, listed in things().items():
        style = chance.choice(STYLES)
        for thing in listed:
            said = f"{DETAILS[turn % len(DETAILS)]} {thing}" if turn else thing
            verbs = chance.sample(sorted(VERBS), TOOLS_PER_THING)
            out += [_tool(chance, f"{server}{turn or ''}", said, verb, style) for verb in verbs]
    return out


def _tool(chance: random.Random, server: str, thing: str, verb: str, style: Style) -> Tool:
    words = [verb, *thing.replace("-", " ").split()]
    names = ["id", f"{words[-1]}_name", *chance.sample(PARAMETERS, 3)]
    one, two, three, four = chance.sample(DETAILS, 4)
    where = chance.choice([f" in {server.capitalize()}", ""])
    lines = [
        f"{VERBS[verb].format(thing=thing)}{where}.",
        chance.choice(["Needs a valid session.", "Returns JSON.", "Results are paged.", "Only for owners."]),
        f"The {thing} is taken from the {one} {two} and checked against the {three} {four}.",
    ]
    schema = {name: {"type": "string", "description": f"The {name.replace('_', ' ')} to use."} for name in names}
    return Tool(
        server=server,
        name=style(words),
        description=" ".join(lines),
        input_schema={"type": "object", "properties": schema, "required": ["id"]},
    )
