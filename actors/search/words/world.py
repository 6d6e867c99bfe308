"""What programs and services in the world do, a line each: most of it no server at hand does. Data of this project.

Written for this project from general knowledge: categories of apps, devices, trades and offices, then services by name.
A request is held against these lines as against the tools: one that is nearer to some of them is more likely for
something that is not there. What a server does offer may stand here, too: its own tools are as near then.
"""

from __future__ import annotations

_DEEDS = """
order food for delivery, takeaway meal from a restaurant
reserve a table at a restaurant, dinner booking
find a restaurant nearby, reviews and opening hours
find a recipe, cook a dish from ingredients
plan meals for a week, diet and shopping list
order groceries from a supermarket
count calories, log a meal, nutrition
buy something in an online shop, place an order
compare prices of a product, find a bargain or a coupon
return a purchase, refund of an order
track a parcel, where is my delivery
send a parcel, print a shipping label, book a courier
book a flight, plane tickets
check in for a flight, boarding pass, seat
status of a flight, delays and departures
book a hotel room, accommodation
rent a holiday flat, vacation home
rent a car, pick up at the airport
book a train ticket, rail timetable
departures of buses and trams, public transport
call a taxi, order a ride
rent a scooter or a bicycle
plan a trip, itinerary, sights
apply for a visa, passport
directions from one place to another, route, driving time
traffic on the way, road works, accidents
find a parking space, pay for parking
find a petrol station, price of fuel
charge an electric car, charging station
unlock the car, start its engine, where it is parked
weather forecast, rain, temperature
air quality, pollen, ultraviolet index
earthquakes, floods, storm warnings
tides, waves, height of the sea
sunrise, sunset, phase of the moon
what time is it, time in another city, time zone
set an alarm, wake me up
set a timer, countdown, stopwatch
remind me of something later
add an appointment to the calendar, schedule a meeting
find a free time for a meeting with several people
cancel or move an appointment
invite guests to an event, replies
buy tickets for a concert, theatre or match
what is on at the cinema, film times
add a task to a to-do list
track habits, streaks
write in a diary, journal, mood
keep a note, notebook
search my notes
scan a paper document with the camera
sign a document electronically, signature
send a letter by post, postage
send an email, mail with attachment
read my inbox, unread mail
reply to an email, forward it
sort emails into folders, rules, unsubscribe, spam
send a text message, SMS
send a chat message to a friend
make a phone call, ring somebody
listen to voicemail, missed calls
block a caller, spam calls
start a video call, join a meeting
record a meeting, transcript and minutes
look up a contact, phone number and address of a person
merge duplicate contacts, address book
post on social media, share a photo
schedule social media posts, content plan
read comments and likes, followers
follow or unfollow an account, block a user
direct message on a social network
start a poll, survey, collect answers
build a form, questionnaire
write a blog post, publish an article
send a newsletter, mailing list, subscribers
run an email campaign, open rate
launch an advertisement, ad campaign, budget
keywords for search engines, ranking of a site
analytics of visitors to a website, page views
test two variants of a page, conversion
play music, a song, an album
make a playlist, add a track
what song is this, recognise music
lyrics of a song
play the radio, a podcast
turn the volume up or down, pause, skip
play a film on the television, series
recommend a film or a book to me
record a television programme
download a video from a site
upload a video to a channel, title and thumbnail
live stream a video, broadcast
captions and subtitles of a video
borrow a book, library loan, e-book
track reading, book reviews
play a game, chess move, puzzle
statistics of players, leaderboard, achievements
start a game server, invite players
results of matches, league table, football
bet on a match, odds, lottery numbers
horoscope, star sign, tarot
tell a joke, a quote, a fact
quiz, trivia question
dictionary, definition of a word, synonyms
translate a text into another language
correct grammar and spelling
rewrite a text, tone and style
summarise a long text
detect plagiarism, text written by a machine
learn a language, vocabulary, flash cards
enrol in a course, lessons, homework
grade an assignment, pupils and marks
timetable of a school or university
find a tutor, a teacher
look for a job, vacancies
write a CV, cover letter
applications of candidates, recruiting, interviews
request holidays, days off, absence
record working hours, time sheet
shifts of staff, rota
onboard a new employee, contracts of staff
pay wages, payroll, payslip
performance review, feedback, goals
organisation chart, who reports to whom
expenses, receipts, reimbursement
book a business trip, travel policy
book a meeting room, a desk
visitors at reception, badge
write an invoice, bill a customer
pay a bill, bank transfer
balance of my account, transactions
budget of a household, spending by category
split a bill among friends
send money to somebody
exchange rate, convert currency
buy or sell shares, portfolio
price of a stock, market data
financial statements of a company, earnings
buy cryptocurrency, wallet, tokens
smart contract, transaction on a blockchain
apply for a loan, mortgage calculator
credit score, debts
compare insurance, file a claim
tax return, VAT
bookkeeping, ledger, journal entry
reconcile bank statements, accounts
depreciation, fixed assets, audit
donate to a charity
raise money, crowdfunding
accept a card payment, checkout
refund a payment, dispute, chargeback
subscription of a customer, renew or cancel a plan
discount code, gift card, loyalty points
quotation, proposal for a client, price list
contract, clauses, negotiation, legal review
search court decisions, laws, statutes
register a trademark, patent search
found a company, register a business
file a complaint, report to an authority
renew a driving licence, identity card
register to vote, elections, polling station
population statistics, census
land register, building permit
report a pothole, bins, city services
dates when waste is collected
call an ambulance, emergency, police
crime statistics, missing person
see a doctor, book a medical appointment
symptoms, what illness is it
prescription, order medicine, pharmacy
remind me to take pills
results of laboratory tests, medical record
blood pressure, heart rate, sleep tracking
blood sugar, insulin
steps and runs, workout, fitness plan
weight and body measurements
menstrual cycle, pregnancy
meditation, breathing exercise
find a therapist, mental health
vaccination, travel medicine
interactions of drugs, dosage
patients in a hospital, beds, wards
radiology image, X-ray, scan
genome, gene, DNA sequence
structure of a protein, docking
chemical compound, reaction, molecule
clinical trials, medical literature
symptoms of a pet, veterinary
feed a pet, walk the dog
identify a plant, a bird, a mushroom
water the plants, garden calendar
irrigation of fields, soil, harvest
livestock, herd, milk yield
turn the lights on or off, brightness, colour
set the thermostat, heating, temperature of a room
lock the front door, open the garage
camera at the door, who is there, doorbell
arm the alarm of the house, sensors, motion
open the blinds, curtains
start the washing machine, dishwasher
vacuum the floor with a robot
preheat the oven, coffee machine
consumption of electricity, solar panels, battery
read the meter, energy tariff
run a scene at home, automation when I leave
repair in the house, find a plumber or an electrician
cleaning service, book a handyman
move house, moving company
flats to rent, houses for sale
value of a property, mortgage, viewing
tenants, rent, lease
design a room, furniture, floor plan
paint colours, building material
cost estimate for construction, bill of quantities
building model, CAD drawing
wedding guests, seating plan
find a date, dating profile, matches
send flowers, a gift, a greeting card
family tree, ancestors
babysitter, child care
parental control, screen time
find my phone, location of a device
battery of the phone, do not disturb, settings of a device
take a photo, selfie, screenshot
record the screen
record sound with the microphone
transcribe speech into text
read a text aloud, speech from text
clone a voice, change a voice
remove the background of a picture
crop, resize, rotate a picture
upscale, sharpen, restore an old photo
filter, brightness, colours of a photo
generate a picture from a description
draw a logo, icon, illustration
make a poster, flyer, banner
colour palette, fonts
mockup of an app, wireframe, prototype
compress a picture, convert its format
add a watermark, a signature
recognise faces, objects in a picture
read text from a picture, OCR
make a QR code, a barcode
photo album, sort photos by person
make a meme, a sticker, a GIF
cut a video, trim, join clips
convert a video, codec, resolution
add music or titles to a video
animate a character, motion graphics
mix audio, remove noise, equaliser
separate vocals from a track
compose music, chords, notes, MIDI
render a 3D scene, model, texture
print a model on a 3D printer, slice
control a laser cutter, milling machine
fly a drone, waypoints
move a robot arm, gripper
read a sensor, GPIO, microcontroller
flash firmware, update a device
pair a Bluetooth device
connect to a wireless network, password of the wifi
print a document, printer queue
open, close or restart an app on the computer
shut down or lock the computer
volume and brightness of the computer
move the mouse, click and type on the desktop
clipboard, copy and paste
free memory, processes, load of the processor
clean the disk, space left
install or update a program
uninstall software, package manager
back up my files, restore a backup
synchronise folders, cloud storage
share a file with a link, permissions
zip and unzip files, archive
rename many files, sort them by date
find duplicate files
encrypt a file, a disk
recover deleted files
merge PDF files, split pages
fill in a PDF form
convert a document to another format
write a document, headings, table of contents
edit a spreadsheet, formula, pivot table
make slides, presentation
draw a diagram, flow chart
mind map, whiteboard, sticky notes
draw a chart of data
build a dashboard, report
query a database with SQL
design a schema of tables, migration
insert, update or delete rows
import or export CSV data
clean data, missing values, duplicates
move data from one system to another, pipeline
schedule a job, cron, workflow
data warehouse, lineage, catalogue of data
full-text search, index documents
vector database, embeddings
cache, key and value
message queue, publish, consume, topic
graph database, nodes and relations
time series, metrics store
train a model, fine tune, neural network
predict, classify, cluster data
evaluate a model, experiment tracking
label data, annotate images
call a language model, prompt, completion
remember facts about a user, memory
solve an equation, integral, matrix
plot a mathematical function
calculate a percentage, a sum
convert units, miles to kilometres
statistics, regression, test of a hypothesis
random number, dice, coin, password generator
date arithmetic, days between two dates
optimise, linear programming, routing of vehicles
simulate a circuit, electronics
simulate physics, flow, finite elements
orbit of a satellite, stars, telescope
satellite images, land use, maps
geocode an address, coordinates
distance between places, area of a polygon
search scientific papers, citations
manage references, bibliography
look something up in an encyclopaedia
search the web
latest news, headlines
fetch a web page, extract its text
crawl a site, scrape data
fill in a form on a web page, click, browser
take a screenshot of a page
broken links, accessibility of a site
speed of a page, performance audit
monitor a page for changes
shorten a link
look up a domain, who owns it, register it
DNS records, name server
certificate, TLS, expiry
ping a host, trace route, open ports
firewall rule, block an address
VPN, tunnel, remote access
log in to a server by SSH, run a command
copy files to a server, FTP
virtual machine, start, stop, resize
container, image, registry
cluster, pods, deployments, scale
serverless function, deploy, invoke
object storage, bucket, upload
load balancer, network, subnet
infrastructure as code, plan, apply
cost of the cloud, bill, budget alert
users and roles, permissions, access policy
single sign-on, multi-factor, reset a password
secrets, keys, rotate, vault
audit log, who did what
vulnerabilities, scan of dependencies
scan a file for viruses, malware
check whether a mail is phishing
leaked passwords, breach
security incident, alerts, threat intelligence
penetration test, exploit
compliance, privacy request, delete personal data
logs of an application, search for errors
metrics, CPU, memory, alert
trace of a request, latency
error report, crash, stack trace
status page, uptime, outage
on call, page somebody, escalate
incident, post mortem
feature flag, roll out
deploy a release, roll back
build, continuous integration, failed pipeline
run tests, coverage
lint, format code, static analysis
refactor, rename a symbol, jump to definition
explain code, review code
generate code, scaffold a project
debug, breakpoint, profile
compile, link, build for a platform
run a script, Python, shell
notebook, run a cell
commit, push, branch, merge
pull request, review, approve
issue, bug report, label, assign
release notes, version, tag
search code in repositories
documentation of a library
publish a package, version of a dependency
test an API, send an HTTP request
mock a server, webhook
API specification, schema of requests
mobile app, build, simulator, store
app store reviews, ratings
beta testers, crash of the app
game engine, scene, sprite
translate an app, strings, localisation
regular expression, match a text
encode, decode, hash, base64
format JSON, YAML, XML, compare
generate fake data, identifiers
edit a file, replace a text
list a folder, read a file, create a directory
compare two files, difference
ticket of a customer, help desk, reply
chatbot, automatic answers, knowledge base
satisfaction of customers, feedback, NPS
customer record, lead, deal, pipeline
call list, sales forecast, quota
enrich a company, find an email address of a person
project plan, milestones, Gantt chart
sprint, backlog, story points
board, cards, columns
roadmap, feature request, priorities
objectives and key results
wiki page, knowledge base of a team
channel of a team, announce, mention
stand-up, summary of what the team did
inventory, stock level, warehouse
purchase order, supplier, approval
production plan, machines, maintenance
quality control, defects
fleet of vehicles, drivers, fuel
customs, freight, container ship
point of sale, till, receipt
menu of a restaurant, kitchen orders
hotel guests, rooms, housekeeping
product in a shop, variants, price, description
orders of a shop, fulfil, ship
abandoned cart, recommendations
marketplace listing, auction, bid
second-hand, sell my things
website builder, theme, page, plugin
comments on a site, moderation
members of a club, fees
church, association, volunteers
parliament, bills, votes of members
grants, tenders, procurement
museum, works of art, exhibitions
nature, species, conservation
water level, river, snow, avalanche
ski slopes, hiking trail, GPX
fishing, hunting, boat
aircraft, radar, airspace
ships, ports, AIS
railway signals, track
space launch, rocket
military, weapons
fortune, dreams, superstition
"""

_SERVICES = """
spotify, play a song, playlist, queue, liked songs
apple music, itunes, play an album
sonos, speakers, play in the kitchen
soundcloud, bandcamp, tracks and followers
shazam, identify a song
audible, audiobook, kindle, goodreads
netflix, watch list, series
disney plus, amazon prime video, what to watch
plex, jellyfin, kodi, media library
youtube, video, channel, subscribers
youtube music, playlist
twitch, stream, chat, followers
vimeo, upload, privacy of a video
tiktok, post a clip, trends
instagram, story, reel, followers
facebook, page, group, event
twitter, X, tweet, timeline
mastodon, bluesky, toot, feed
reddit, subreddit, post, comments
linkedin, profile, connections, post
pinterest, pin, board
snapchat, snap, story
tumblr, medium, substack, publish
quora, stack overflow, question and answer
hacker news, top stories
whatsapp, message, group, business
telegram, bot, channel, message
signal, viber, wechat, line, message
imessage, text a contact on the iphone
messenger, chat, sticker
discord, server, channel, role
slack, channel, message, status, emoji reaction
microsoft teams, chat, channel, meeting
zoom, create a meeting, recording, participants
google meet, webex, call link
mattermost, rocket chat, room
skype, call, voicemail
twilio, SMS, phone number, call
vonage, ringcentral, call log
gmail, label, draft, thread, filter
outlook, mail, folder, rule, calendar
icloud mail, proton mail, inbox
mailchimp, campaign, audience
sendgrid, mailgun, postmark, transactional mail
klaviyo, brevo, customer journey
hubspot, contact, deal, ticket
salesforce, opportunity, account, SOQL
pipedrive, zoho crm, deal stage
intercom, zendesk, freshdesk, conversation, ticket
servicenow, incident, change request
google calendar, event, free busy
apple calendar, reminders on the mac
calendly, booking link, slots
doodle, poll of dates
todoist, task, project, due date
things, omnifocus, ticktick, microsoft to do
trello, card, list, board
asana, task, section, portfolio
monday, item, column, workspace board
clickup, basecamp, wrike, task
jira, issue, sprint, transition
linear, issue, cycle, team
confluence, page, space
notion, page, database, block
obsidian, vault, note, backlinks
evernote, onenote, bear, apple notes
roam, logseq, daily note
coda, airtable, base, record
smartsheet, sheet, row, dependency
google docs, document, suggestion, comment
google sheets, cell, range, formula
google slides, slide, layout
google drive, file, folder, sharing
google forms, typeform, surveymonkey, responses
google photos, album
google maps, places, directions, reviews
google earth, street view
google contacts, people
google keep, note, checklist
google analytics, sessions, audience
google ads, keyword bids, campaign
google search console, indexing, queries
google play console, release track
google tasks, google chat, google classroom
microsoft word, document, paragraph, style
microsoft excel, workbook, worksheet, cell
microsoft powerpoint, slide, shape
sharepoint, site, list, document library
onedrive, dropbox, box, file, shared link
icloud drive, nextcloud, files
visio, lucidchart, draw.io, diagram
miro, mural, sticky note, board
figma, frame, component, variables
sketch, adobe xd, zeplin, design handoff
canva, design, template, brand kit
photoshop, layer, mask
illustrator, inkscape, vector path
lightroom, preset, raw photo
gimp, imagemagick, filter
premiere, final cut, davinci resolve, timeline
after effects, keyframe, composition
capcut, descript, edit by transcript
ffmpeg, handbrake, convert
audacity, logic, ableton, track, tempo
obs, scene, source, start streaming
blender, object, modifier, render
unity, game object, scene, prefab
unreal, actor, blueprint
godot, node, script
roblox, minecraft, world, server
steam, library, wish list, friends
xbox, playstation, nintendo, console
autocad, fusion 360, solidworks, sketch, extrude
rhino, grasshopper, revit
onshape, openscad, freecad
octoprint, prusa, print job
kicad, altium, schematic, circuit board
arduino, esp32, raspberry pi, pin
home assistant, entity, service, automation
philips hue, lamp, scene
smartthings, homekit, alexa routine
nest, ecobee, thermostat
ring, arlo, camera, doorbell
roomba, roborock, vacuum
tesla, car, climate, charge
bmw, ford, connected car
uber, lyft, bolt, ride
deliveroo, doordash, uber eats, food order
instacart, hellofresh, groceries
opentable, resy, table
yelp, tripadvisor, foursquare, places
airbnb, vrbo, stay, listing
booking.com, expedia, hotels, agoda
skyscanner, kayak, flight search
amadeus, sabre, fares
ryanair, lufthansa, check in
amtrak, deutsche bahn, trainline, rail
citymapper, moovit, transit
waze, here, tomtom, mapbox, route
openstreetmap, overpass, nominatim
flightradar, opensky, plane
marinetraffic, vessel
openweather, accuweather, forecast
strava, activity, segment, route
garmin, fitbit, whoop, oura, sleep
apple health, steps, workout
peloton, zwift, class
myfitnesspal, calories
headspace, calm, session
epic, cerner, FHIR, patient
pubmed, medline, abstract
uniprot, pdb, protein
ensembl, ncbi, blast, gene
chembl, pubchem, compound
rdkit, gromacs, simulation
openfda, drugbank, drug label
arxiv, preprint, paper
semantic scholar, crossref, openalex, citations
zotero, mendeley, library, collection
google scholar, author profile
wikipedia, article, summary
wikidata, sparql, entity
wolfram alpha, compute
matlab, octave, matrix
mathematica, sympy, symbolic
rstudio, spss, stata, regression
jupyter, colab, kaggle, notebook
pandas, polars, data frame
numpy, scipy, pytorch, tensorflow
hugging face, model, dataset, space
openai, chatgpt, completion, assistant
anthropic, claude, message
gemini, vertex ai, mistral, model
ollama, llama, local model
replicate, stability, midjourney, image
elevenlabs, speech, voice
deepgram, whisper, assemblyai, transcription
langchain, langsmith, trace of an agent
mem0, memory, knowledge graph
pinecone, weaviate, qdrant, chroma, milvus, vectors
weights and biases, mlflow, run, artifact
perplexity, tavily, exa, brave, search the web
bing, duckduckgo, kagi, search
serpapi, results page
firecrawl, apify, scraper, crawl
browserbase, playwright, puppeteer, selenium, browser
chrome devtools, console, network
github, repository, pull request, workflow
github actions, run, artifact
gitlab, merge request, pipeline
bitbucket, gitea, repository
git, commit, stash, rebase
azure devops, work item, board, pipeline
jenkins, circleci, travis, buildkite, build
argo cd, flux, sync an application
sonarqube, snyk, dependabot, quality gate
sentry, rollbar, bugsnag, error
datadog, monitor, dashboard
new relic, dynatrace, appdynamics, apm
grafana, prometheus, loki, panel, query
splunk, elastic, kibana, search logs
pagerduty, opsgenie, incident, schedule
statuspage, pingdom, uptime robot
launchdarkly, split, flag
amplitude, mixpanel, posthog, funnel
segment, event stream
hotjar, fullstory, session recording
optimizely, experiment
tableau, power bi, looker, metabase, dashboard
snowflake, warehouse, query
bigquery, dataset, table
redshift, athena, glue, query
databricks, cluster, job, unity catalog
dbt, model, lineage
airflow, dagster, prefect, run of a pipeline
fivetran, airbyte, sync, connector
kafka, topic, consumer group
rabbitmq, sqs, queue, message
redis, memcached, key
postgres, index, explain, query
mysql, mariadb, query
sqlite, duckdb, local database
mongodb, collection, aggregation
dynamodb, cosmos db, item
cassandra, scylla, keyspace
neo4j, cypher, graph
elasticsearch, opensearch, index
clickhouse, timescale, influxdb, series
supabase, firebase, project, auth
oracle, sql server, stored procedure
sap, oracle erp, dynamics, purchase order
netsuite, odoo, sales order
workday, bamboohr, personio, employee
greenhouse, lever, candidate
gusto, adp, payroll
concur, expensify, receipt
quickbooks, xero, freshbooks, invoice
stripe, payment, subscription, invoice
paypal, venmo, wise, money transfer
square, adyen, klarna, payment
plaid, bank account, transactions
revolut, monzo, bank card
robinhood, interactive brokers, alpaca, trade
yahoo finance, alpha vantage, bloomberg, quote
coinbase, binance, kraken, order
ethereum, bitcoin, solana, wallet
uniswap, opensea, nft
turbotax, datev, tax
shopify, product, order, customer
woocommerce, magento, bigcommerce, shop
amazon, order, seller, listing
ebay, etsy, listing
walmart, target, ikea, store
gumroad, patreon, kickstarter
eventbrite, ticketmaster, meetup, event
opentable, toast, restaurant
wordpress, post, plugin, theme
ghost, webflow, squarespace, wix, site
contentful, sanity, strapi, content entry
drupal, joomla, cms
docusign, adobe sign, envelope
adobe acrobat, PDF form
zapier, make, n8n, ifttt, workflow
power automate, flow
camunda, temporal, process instance
retool, bubble, internal app
aws s3, bucket, object
aws ec2, instance, security group
aws lambda, function, logs
aws cloudwatch, alarm, log group
aws iam, role, policy
aws rds, aurora, snapshot
aws ecs, eks, fargate, service
aws cloudformation, cdk, stack
aws route 53, cloudfront, distribution
aws cost explorer, spend
aws bedrock, sagemaker, endpoint
azure storage, blob, container
azure virtual machine, resource group
azure key vault, secret
azure sql, cosmos, server
azure monitor, log analytics workspace
azure kubernetes, app service
azure active directory, entra, user
google cloud run, compute engine
google cloud storage, pub sub
cloudflare, worker, zone, DNS, R2
fastly, akamai, purge the cache
vercel, netlify, deployment, domain
heroku, render, fly, railway, app
digitalocean, linode, hetzner, droplet
docker, container, compose, volume
docker hub, registry, tag
kubernetes, pod, namespace, kubectl
helm, chart, release
terraform, pulumi, module, state
ansible, puppet, chef, playbook
vagrant, virtualbox, vmware, machine
proxmox, esxi, hypervisor
linux, systemd, service, journal
windows, registry, powershell
macos, applescript, shortcuts, finder
android, adb, emulator
iphone, ios simulator, xcode
vs code, intellij, editor, extension
vim, emacs, buffer
tmux, iterm, terminal
npm, yarn, package
pip, poetry, conda, environment
cargo, maven, gradle, go module
homebrew, apt, chocolatey, package
nginx, apache, caddy, virtual host
tailscale, wireguard, network
okta, auth0, keycloak, application
1password, bitwarden, lastpass, password
hashicorp vault, secret engine
crowdstrike, defender, endpoint
virustotal, shodan, indicator
burp, nmap, metasploit, scan
ghidra, ida, decompile
wireshark, packet capture
have i been pwned, breach
cisco, juniper, unifi, router, switch
pfsense, fortinet, palo alto, rule
pi-hole, adguard, blocklist
synology, truenas, share
bluetooth, airplay, chromecast, cast
alexa, siri, google assistant, voice command
apple watch, wear os
apple wallet, google pay, pass
find my, tile, tracker
duolingo, anki, deck, card
khan academy, coursera, udemy, course
canvas, moodle, blackboard, assignment
google classroom, kahoot, class
grammarly, deepl, text
zillow, rightmove, property
taskrabbit, thumbtack, job
indeed, glassdoor, vacancies
upwork, fiverr, freelancer
tinder, bumble, profile
ancestry, 23andme
gofundme, charity
chess.com, lichess, game
fantasy football, espn, score
fifa, nba, formula one, standings
pokemon, dungeons and dragons, magic cards
imdb, tmdb, letterboxd, film
last.fm, musicbrainz, genius, lyrics
nasa, space, picture of the day
usgs, noaa, earthquake, buoy
copernicus, sentinel, landsat, scene
qgis, arcgis, layer, feature
world bank, eurostat, fred, indicator
sec edgar, companies house, filing
patent office, trademark
court listener, westlaw, case law
congress, parliament, bill
data.gov, open data portal, dataset
ups, fedex, dhl, shipment
shipstation, easypost, label
samsara, geotab, vehicle
opc ua, modbus, plc, tag
mqtt, topic, sensor
zigbee, matter, device
grafana oncall, backstage, service catalogue
postman, insomnia, collection
swagger, openapi, operation
graphql, hasura, mutation
grpc, protobuf, service
storybook, tailwind, component
react, vue, svelte, next, component
django, rails, laravel, migration
flutter, expo, app build
appium, browserstack, test session
jest, pytest, cypress, test
testrail, xray, test case
qualtrics, responses
gong, chorus, call insight
apollo, clearbit, zoominfo, lead
semrush, ahrefs, backlinks
buffer, hootsuite, post queue
meta ads, tiktok ads, linkedin ads
twilio segment, customer.io, journey
algolia, typesense, index
cloudinary, imgix, image transform
mux, wistia, video asset
loom, screen recording
otter, fireflies, fathom, meeting notes
readwise, pocket, instapaper, read later
feedly, rss, feed
google news, newsapi, headlines
wayback machine, archive of a page
bitly, rebrandly, short link
whois, godaddy, namecheap, domain
let's encrypt, certificate
"""

WORLD: tuple[str, ...] = tuple(dict.fromkeys((_DEEDS.strip() + _SERVICES.rstrip()).splitlines()))
"""The lines, each once."""
