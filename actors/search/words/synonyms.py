"""Synonym groups and abbreviations. Data of this project, under its licence.

Written for this project from general knowledge of English and of the vocabulary of software tools; no thesaurus was
copied. A line of `SYNONYMS` is a group: each word stands for each other one. A line of `ABBREVIATIONS` is directed: the
word on the left is written, the words on the right are meant.
"""

from __future__ import annotations

SYNONYMS = """
create make add new insert generate build compose establish
delete remove erase drop destroy purge discard
update edit modify change alter revise patch adjust amend
get retrieve fetch obtain read view show display see
list enumerate show display browse overview
search find lookup query locate discover seek
send post deliver transmit publish submit
write save store put persist
move relocate transfer
rename retitle
copy duplicate clone replicate
open launch load
close shut
start begin launch run trigger initiate
stop halt end terminate kill cancel abort
run execute invoke perform
check verify validate inspect test lint
analyze analyse analysis examine inspect study evaluate assess
compare diff difference contrast
convert transform conversion turn translate
calculate compute calculation
merge combine join unify
split divide separate
download grab pull
upload attach
export dump
import ingest load
summarize summary digest summarise
explain describe
extract parse scrape
draw render plot visualize
recommend suggest advise recommendation suggestion
schedule plan book arrange
notify alert inform
reply respond answer
approve accept
reject decline deny
assign delegate
enable activate
disable deactivate
install setup deploy
restart reboot
monitor watch track
sort order rank arrange
filter select
format style
highlight emphasize
fill populate enter type input
click press tap
navigate visit browse goto
scroll swipe
screenshot capture snapshot
directory folder
file document
picture image photo photograph
video movie clip
audio sound recording
chart graph plot diagram visualization
email mail message
message chat msg
issue ticket bug defect
bug defect error
error exception crash failure fault
task todo
note memo
calendar schedule agenda
event meeting appointment
contact person people
user member account
team group
channel room
comment remark feedback
repository repo project
branch fork
commit revision changeset
log history
logs events records
database db
table sheet
row record entry
column field attribute
cell range
spreadsheet worksheet workbook excel xlsx
presentation slides slideshow deck powerpoint ppt pptx
document doc docx word
page webpage website site
website site webpage
url link address
address location place
map geography
route directions path itinerary
distance far
weather forecast temperature
price cost pricing quote rate
stock share equity ticker
currency money exchange
news headlines
article paper publication
paper preprint
book title
song music track
product item
order purchase
customer client
company organization business
employee staff worker
container docker
cluster kubernetes
pod container
function lambda
server host instance
secret credential password
key token
permission access role authorization
policy rule
alarm alert
metric metrics statistics stats
dashboard panel
test tests spec
build pipeline ci
release version
dependency package library module
documentation docs manual guide reference
example sample
code source script
template boilerplate
setting settings configuration config preference
notification alert
reminder alarm
attachment file
tag label
category type kind
status state
time clock
timezone zone
date day
hot trending popular top
ranking rank leaderboard
nearby near around close
latest newest recent current
statistics stats metrics
size dimension weight
schema structure
index indices indexes
vector embedding embeddings
memory knowledge
entity node
relation relationship edge
subtitle transcript caption captions
voice speech
component widget element
color colour
icon logo
font typeface
vacancy job
flight airline
hotel accommodation lodging homestay
restaurant food dining
recipe dish meal cooking
train railway rail
game gaming
player champion character
team squad
random arbitrary
reasoning thinking think
tree hierarchy structure
password passphrase
encrypt protect lock
decrypt unprotect unlock
quota limit
region location
usage consumption
subscription plan
resource resources asset
remember memorize memorise store memory
recall remember memory
disk filesystem local
expire expiration expiry ttl disappear
coworker colleague teammate member
available availability free busy freebusy
wiki confluence
tracker issue ticket
stash shelve
worklog hours
grant attach allow permission
revoke detach permission
localhost local port
expose tunnel
invoice bill billing
payment charge transaction
conversation chat thread
mention ping
unread inbox
spam junk
star bookmark favorite favourite
reaction emoji react
mute silence snooze
attendee participant guest invitee
invite invitation add
postpone reschedule move
reserve reservation book
checklist todo
sprint iteration board
kanban board
epic story issue
diff changes
stage add index
unstage reset
revert undo rollback
restore recover undelete
backup snapshot
traceback stacktrace exception
latency performance duration
slow performance
incident outage alert
trace span
aggregate group
count number total
average mean
crawl spider scrape
dropdown select option
cookie session
javascript script evaluate
tab window
refresh reload
zip compress archive
unzip extract decompress
resize scale
crop trim cut
heading title
paragraph text
translate translation language
spell spelling grammar
meaning definition define dictionary
lyrics song
playlist song
artist musician band
podcast episode
actor cast
league tournament competition
standings ranking
bitcoin crypto cryptocurrency coin
wallet balance
balance account funds
portfolio holdings positions
earnings income revenue
rain precipitation weather
pollution aqi
earthquake quake seismic
elevation altitude height
trip travel journey vacation
fare ticket
car vehicle automobile
traffic congestion
doctor physician
drug medicine medication
disease illness condition
research study paper
citation cite reference
author writer
candidate applicant
salary wage pay
career job position
university college school
course class lesson
student pupil
quiz exam
property house apartment estate
rent lease
lamp light bulb
toggle switch turn
domain dns
certificate ssl tls
vulnerability cve security
firewall security
bucket storage
blob object
queue sqs
topic sns pubsub
scale replicas
rollout deployment deploy
volume disk storage
agent assistant bot
draft compose write
rewrite rephrase paraphrase
shorten short
sentiment emotion opinion
classify categorize categorise
thumbnail preview
animation gif
mesh object model
material texture
mockup design wireframe
whiteboard canvas
survey form questionnaire
submission response
lead prospect contact
deal opportunity
newsletter campaign email
ad ads advertisement advert
tweet twitter post
livestream stream live
cart basket
discount coupon promo
shipping shipment delivery
parcel package
inventory stock
vendor supplier
review rating
nutrition calorie
workout exercise fitness
horoscope zodiac astrology fortune
joke humor
uuid guid
checksum hash digest
teach learn tutorial
lecture course
bold italic format
restart rollout
speak speech voice
aloud speech voice
recording audio transcribe
tall height elevation
big size large
machine computer local
login signin authenticate
logout signout
signup register registration
unsubscribe leave
join enter
hourly daily weekly schedule
recurring repeat schedule
thumbs reaction
coordinate location position
restaurant cafe coffee place
"""

ABBREVIATIONS = """
pr=pull request
mr=merge request
db=database
repo=repository
repos=repository
k8s=kubernetes
kubernetes=k8s kubectl aks eks
dir=directory
doc=document
docs=documentation document
info=information
information=info
config=configuration
cfg=configuration
app=application
application=app
msg=message
img=image
pic=picture image
pics=picture image
stats=statistics
env=environment
js=javascript
ts=typescript
py=python
org=organization
orgs=organization
acct=account
param=parameter
params=parameter
arg=argument
args=argument
spec=specification
ref=reference
refs=reference
num=number
max=maximum
min=minimum
avg=average
lang=language
lib=library
pkg=package
vm=virtual machine
vms=virtual machine
vmss=virtual machine scale set
vdi=virtual desktop
ppt=powerpoint presentation
pptx=powerpoint presentation
powerpoint=ppt presentation
xls=excel
xlsx=excel
spreadsheet=excel sheet
calc=calculate calculator
deps=dependency
dev=development
prod=production
auth=authentication authorization
cert=certificate
certs=certificate
sync=synchronization
sub=subscription
subs=subscription
pg=postgres postgresql
postgres=postgresql
postgresql=postgres
sql=database query
mongo=mongodb
es=elasticsearch
elastic=elasticsearch
gh=github
gl=gitlab
gcal=google calendar
gdrive=google drive
gdocs=google docs
gsheet=google sheets
ci=pipeline build
cd=deployment
temp=temperature
id=identifier
admin=administrator
tz=timezone
utc=timezone
faq=question
ui=interface
ai=artificial intelligence
ml=machine learning
llm=language model
rag=retrieval
sms=text message
tts=text speech
stt=speech text transcribe
transcribe=transcript speech text
transcription=speech text transcript
ocr=text image recognition
api=endpoint
qr=code
csv=comma separated
docx=word document
pdf=document
cv=resume
hn=hacker news
yt=youtube
osm=openstreetmap
lol=league legends
wechat=weread weixin
rbac=role access
iam=identity access role
acr=container registry
aks=kubernetes cluster
eks=kubernetes cluster
ecs=container service
ec2=virtual machine instance
s3=bucket storage
kql=kusto query
kusto=data explorer
tf=terraform
npm=package node
cicd=pipeline
ttl=expire
bday=birthday
faqs=questions
kb=knowledge base
crm=hubspot salesforce contact
geocode=coordinates address
coordinates=geocode latitude longitude
latitude=geocode coordinates
mindmap=mind map
wordcloud=word cloud
flowchart=flow diagram
timezone=time zone
google=search
web=internet online
internet=web online
online=web internet
screenshot=capture screen
price=pricing
cheap=price deal
weather=forecast
dm=direct message
dms=direct message
cal=calendar
wiki=confluence
md=markdown
svc=service
ns=namespace
deploy=deployment
vuln=vulnerability
vulns=vulnerability
perf=performance
freq=frequency
temp=temporary
tmp=temporary
len=length
idx=index
tbl=table
col=column
cols=column
desc=description describe
addr=address
loc=location
lat=latitude
lng=longitude
lon=longitude
btc=bitcoin
eth=ethereum
nyc=york
fx=exchange currency
eta=duration
aws=amazon
gcp=google cloud
bq=bigquery
sf=salesforce
tg=telegram
wa=whatsapp
ig=instagram
fb=facebook
obs=obsidian
postgre=postgresql postgres
jd=job description
ad=directory
sg=security group
lb=load balancer
cron=schedule
"""
