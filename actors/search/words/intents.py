"""What people say and what they want done by it: rules of paraphrase. Data of this project, under its licence.

Written for this project: how people ask for each kind of thing that MCP servers commonly do, from general knowledge
  of
English. `intents.py` has the language of the rules. A meaning uses the words in which tools describe themselves, the
usual one first; several words of a need are alternatives, and only the best of them counts.
"""

from __future__ import annotations

_INTENTS = r"""
# Calendars: what has a time and concerns people is an event
put|pencil|book|squeeze|slot|pop|stick me down|in for => create manage / event calendar
put|pencil|book|squeeze|slot|pop me .. #time => create manage / event calendar
put|enter|note|add|pop|stick ... in|into|on|to calendar|diary|agenda => create manage / event calendar
block|keep|hold|reserve .. off|out|free .. #time => create manage / event focus calendar
block|hold|reserve .. #time => create manage / event focus calendar
put|set|schedule|arrange|organise|organize|plan|book ..
  meeting|call|appointment|standup|lunch|dinner|catchup|interview|sync => create manage schedule / event calendar
  meeting
appointment|dentist|doctor|hairdresser|haircut|checkup .. #time => event calendar appointment
meet|meeting|lunch|dinner|coffee|call with .. #time => event calendar meeting
what|which|anything .. on .. #time => event calendar / list get
what ... day|week|morning|afternoon|schedule|agenda|diary look like => event calendar / list get
what|anything .. coming|planned|scheduled up|for|on => event calendar / list get
how busy|full|packed am|is|are => event calendar freebusy / list get
am|are i|we .. free|busy|available|around => freebusy availability free busy / calendar
is|are .. free|busy|available .. #time => freebusy availability free busy / calendar
when .. everyone|everybody|all|both|we|they|can|could .. free|meet|available => freebusy availability find / calendar
find|pick|suggest .. time|slot .. meet|meeting|all|both|everyone|call|for => freebusy availability / calendar event
do|did|have i|we have ... #time => event calendar
say no to .. invite|invitation|meeting|event => decline / event calendar
say yes to .. invite|invitation|meeting|event => accept / event calendar
turn down .. invite|invitation|meeting|event => decline / event calendar
can|could not|t make .. meeting|it|event|call|dinner|lunch => decline cancel / event calendar
can|won make it to => decline / event calendar
tell them i|we .. can|won|not .. make|come|attend => decline / event calendar
i|we ll be|come there .. #time => accept / event calendar
call off .. meeting|event|appointment|standup|lunch|dinner|interview|call => cancel delete / event calendar
push|move|shift|bump .. meeting|event|appointment|standup|call|lunch|dinner|review|interview .. to|back|by|forward
  => update manage reschedule / event calendar
push|move|shift|bump .. back|forward .. #time => update manage reschedule / event calendar
move|shift|bump|push ... to #time => update manage reschedule / event calendar
cancel|delete|drop ... #time meeting|call|appointment|event|standup|lunch|dinner => cancel delete / event calendar
remind me .. later|again => snooze reminder
stop .. reminding|reminder => dismiss reminder
on|going holiday|vacation|leave .. from|till|until|#time => out office automatic reply manage
away|off|out from|till|until|#time => out office automatic reply
anyone|people who writes|emails|mails .. should get|know => automatic reply out office
don|not want|let .. disturbed|interrupted|bothered => focus time manage
need .. uninterrupted|undisturbed|quiet|alone time => focus time manage
who .. coming|invited|attending .. to|meeting|event|party => event attendees get / calendar
birthday|anniversary|party|concert|wedding .. on|#time => event calendar

# Mail
send .. mail|email|message .. with .. attachment|file => send / mail email message
read|open|show|view .. mail|email|message|note|document|page .. content|text|body => get content read
drop|shoot|fire|ping|send|write .. line|mail|email|note to => send / mail email message
drop|shoot|write|fire #who .. line|mail|email|message|note => send / mail email message
mail|email|e ... to #who => send / mail email
tell|inform|update|let ... by|via|over|per mail|email => send / mail email message
write back|reply to => reply / mail message email
answer|respond .. mail|email|message|him|her|them => reply / mail message email
reply|answer|write .. everyone|all|everybody => reply all / mail
pass|send|hand ... mail|email|message .. on to => forward / mail message email
pass|send|hand .. on|along to => forward share
leave|keep|save .. in|as drafts|draft => create / draft mail email
don|not send it|yet => create / draft
draft|prepare .. reply|answer|response => create draft / reply mail
did|has|have .. write|written|wrote|answer|answered|reply|replied|respond .. me|back|us|to => search messages mail /
  list
anything|what|got .. mail|mails|emails|email from|about|new => search list messages / mail gmail
anything|what .. new in .. inbox|mailbox => list search messages / mail inbox
go|look|read through .. mail|inbox|emails|messages => search list messages / mail inbox
check|read .. mail|mails|email|emails|inbox => search list messages / mail
find|where|search|dig .. mail|email|message .. from|about|with|where => search messages / mail
what did|does .. say|write|want .. mail|email => get message content / mail
from now on|always .. mail|mails|inbox|emails|newsletter|folder => create manage rule filter / mail
skip|bypass .. inbox => create manage filter rule / mail
every|whenever|all .. mail|mails|emails|email .. from .. should|goes|go|into|to => create manage filter rule / mail
keep .. out of .. inbox => create manage filter rule / mail
automatically .. move|sort|file|put|label|archive .. mail|mails|emails|messages|newsletters => create manage filter
  rule / mail
stop|block|no|never .. mails|emails|mail|newsletters from => create manage filter rule / mail
label|tag|flag|mark|star .. mail|mails|message|email|conversation|thread => modify update / label message mail
mark|set .. as read|unread => modify update / message labels mail
put|file|sort|move .. mail|mails|email|emails|message .. in|into|to|under .. folder|label => move modify / message
  mail label
bin|trash|delete|chuck|throw .. mail|mails|email|emails|newsletter|spam => delete trash / message mail
open|get|download|save|grab|fetch .. attachment|attached|enclosed => get download / attachment
what|which|whatever .. attached|enclosed => list get / attachments
attach|enclose ... to .. mail|email|message => add / attachment mail
with ... attached => send attachment / mail
signature|out office|autoreply .. mail|mailbox|settings => mailbox settings update

# People
what|whats|find|look|get ... phone|mobile|cell|telephone number => search get / contact
what ... email address|mail => search get / contact user
how .. reach|contact|call|get hold => search get / contact
phone|mobile number|details of|for .. #who => search / contact
add|save|put|store .. to|in|into|as .. contacts|phonebook|address => create manage / contact
new number|mobile|address|phone => update manage / contact
i met .. at => create / contact
get|put|enter|add him|her|them in|into|to => create add / contact record
who is|are|am|was => get find user / profile
who .. works|work on|in|for|at => list members users
who .. in|on .. team|group|project|channel|company => list / members users
who am i => whoami user current self profile
which|what account|user am i|is => whoami user current account
logged|signed in as => whoami user current account

# Tasks
oat|milk|bread|groceries .. list => add create manage / task todo
put|add|stick|write ... on|to|onto .. list => add create manage / task todo item
need|needs|has|have|must to go|be on .. list => add create manage / task todo item
add|create|put .. to|on .. do => create add manage / task todo
add|create .. to do => create add manage / task todo
don|not let me forget => create manage / task reminder todo
note|remember to self => create / note task
must|need not forget => create manage / task reminder todo
tick|check|cross off|complete => complete done update manage / task todo
i|we ve|have done|finished|did => complete done update / task todo
what .. left|still|open to do => list get / tasks todo
what .. to do|tackle|work .. #time|next|on => list get / tasks todo
what should i|we .. do|work|next => list / tasks todo
due|overdue .. #time => tasks list due

# Notes and memory
keep|bear in mind => remember add create / memory observation entity
^ remember .. i|we|is|was|likes|has|prefers => add create / memory observation entity
for future|later|next reference|time => remember memory note
what .. i|we|you .. know|remember|recall .. about|of => read search / memory knowledge graph
do|did you .. know|remember|recall => search read / memory knowledge
have i|we .. told|tell|mention|mentioned|said|say .. you => search read / memory knowledge graph
what .. i .. told|tell|said|mention you => search read / memory knowledge graph
forget|unlearn .. what|about|everything|i => delete / memory entity observation
no longer|isn true|lives|works|work => update delete / memory observation
jot|scribble|write|note|take .. down => create write / note
write|put|save|keep ... in|into|to .. vault|notes|notebook => write create append / note
add|append|put .. to|at|in .. note|notes|journal|diary => append / note content
daily|weekly|monthly|periodic|today note|journal => periodic note
which|what|find|all|show .. notes .. tag|tagged|label => search / tag notes
what|where did i|we .. write|note|wrote|jot .. about|down => search / notes
tidy|clean .. up .. notes => notes update

remember|memorise|memorize|store|save|keep|note .. fact|facts|preference|preferences|detail|details => add create /
  memory observation entity
recall|recollect ... memory|memories|known|know|fact|facts|knowledge|about => search read / memory knowledge graph
retrieve ... memory|memories|known|know|knowledge => search read / memory knowledge graph
known|remembered|stored about => search read / memory knowledge graph
look up|at .. memory|memories|knowledge|facts => search read / memory knowledge graph
save|keep|write .. note|notes about => create write / note memory

# Files and folders
which|what|biggest|largest|big .. files|folders .. big|biggest|largest|space|size => list / directory files sizes
eating|using|taking|fills|filling|hogging .. disk|space|storage => list / directory files sizes
run|running|short out|low|on .. disk|space|storage => list / directory files sizes
what|list|show|see .. in|inside|is .. folder|directory|downloads|desktop|documents => list / directory files
what|whats|anything in .. folder|directory|downloads|desktop|documents => list / directory files
where .. file|document|folder|pdf|photo => search find / files
where did i|we|she|he .. put|save|store => search find / files
find|look for .. file|files|document named|called|with|ending => search / files
what .. in|inside|does #file => read / file text contents
open|show|read|print|see #file => read / file text contents
read me #file => read / file text contents
rename #file => rename move / file
call #file .. instead => rename move / file
#file to #file => rename move / file
move|put #file .. to|into|in => move / file
save|write|dump|put ... to|in|into|as #file => write create / file
change|replace|fix|edit ... in|inside #file => edit / file
when|how big|old|large .. #file|file|folder => info get / file
when was ... changed|modified|edited|created => info get / history modified
recently changed|edited|modified|touched|opened => recent changes activity
make|save .. copy|backup|duplicate of => copy
folder|directory structure|tree|layout => directory tree

# Shared files and permissions
who .. can .. see|read|open|edit|access => get list / permissions access
who .. has .. access|permission|rights => get list / permissions access
can|could everyone|anyone|everybody|public|whole|world .. see|read|open|access => check get / public permissions
  access
give|grant|get|let ... access|rights|permission|permissions => manage set grant share / permission access
let ... see|read|edit|open|view|comment => share manage / permission access
take|remove|revoke ... access|rights|permission|permissions .. away|from => remove delete revoke manage / permission
  access
take away|back .. access|rights => remove delete revoke manage / permission access
stop ... from seeing|reading|editing|opening => remove delete revoke / permission access
link|url .. anyone|everyone|people .. can|open|share|send => shareable link create share
give|get|make|send .. link|url to => shareable link create get
send|share .. link => shareable link create share
keep .. secret|private|confidential => restrictions permissions set
only .. may|should|can .. see|read|edit|open => restrictions permissions set

# Documents
make|save|turn|export|convert|need|get|want ... as|to|into|in pdf => export convert / pdf
as|into|to pdf => convert export / pdf
as|into|to markdown|md => convert / markdown
as|into|to csv => export / csv
as|into|to png|jpg|image|picture => export render / image
everywhere it|we says|say => search find replace / text
change|replace|swap ... with|by|to|for .. throughout|everywhere|whole|across => search find replace / text
fix|change|correct|replace ... throughout|everywhere|across|whole => search find replace / text
replace|change every|each|all => search find replace
instead of ... everywhere|throughout => search find replace / text
nobody|noone|no|not .. should|can|may .. change|edit|open|modify => protect / document
password on|for|to #file|document|file => protect / document password
lock ... document|file|with password => protect / document password
put|insert|drop|stick|add .. picture|photo|logo|image|graphic in|into|on|to => insert add / image picture
table of contents => outline headings
headings|chapters .. of|does|has|are => outline structure headings
add|put .. page number|numbers => headers footers
add|put|say|write ... at|in .. top|bottom of .. every|each page => header footer
page break => page break add
what|which|read|show|see .. comments|remarks .. in|on|to|people|left => comments list get
what did|do|have .. people|reviewers|#who .. comment|say|think .. on|about|in => comments list get
summary|gist|summarise|summarize of #file => read / file text
make ... bold|italic|underlined|red|blue|green|bigger|smaller => format / text font
bullet points|list => bullet points list add

# Slides
make|build|create|prepare|put .. slides|slide|deck|presentation|powerpoint about|on|for|of => create generate /
  presentation slides
make .. #number slides => create generate / presentation slides
fade|transition|animate|dissolve|wipe .. slide|slides|between|from|one|to => transition slide manage
from one slide to => transition slide manage
looks|look .. boring|ugly|dull|plain|unprofessional => design professional theme format
make ... look .. nicer|prettier|better|professional|nice|pretty => design professional format style
speaker notes => slide notes

# Spreadsheets
boil|break|sum|roll .. down|up .. per|by|to => pivot table create
total|sum|totals|revenue|sales|count|average per|by => pivot table group aggregate
sum|total|add up .. column|row|cells|range => sum range formula
twice|duplicates|duplicate|doubles .. clean|remove|in|rid => duplicates remove transform
remove|delete|drop|find|clean .. duplicates|doubles|duplicate => duplicates remove transform
in|there|are|is twice => duplicates remove transform
only allow|accept|let|numbers|dates|values .. cell|cells|column => data validation add
allowed|choices|choose|pick|dropdown .. cell|cells|column => data validation add
colour|color|highlight|paint|turn .. cells|cell|rows|values|numbers|negative ..
  if|when|over|under|red|green|above|below => conditional format formatting
negative numbers|values .. red => conditional format formatting
red|green|yellow if|when => conditional format formatting
what|which .. value|input|price|number .. get|reach|hit|end => goal seek
why .. formula|cell .. wrong|gives|shows|error => trace formula
where .. number|formula|value|total .. come|comes from => trace formula
new|another|extra tab|sheet|worksheet => create / sheet tab
freeze .. row|header|column|pane => layout sheet freeze
wider|narrower .. column|columns => column width resize
column|columns .. wider|narrower|broader => column width resize
what|read|which .. cell|cells|column|row => read range values
put|enter|write|type|fill ... in|into .. cell|column|row => write update range values
append|add|put ... row|rows|line|lines .. to|in|into|at => append insert add / rows
sort|order .. by => sort range

# Charts and diagrams
show|plot|draw|graph ... as .. bar|bars|columns => bar column chart generate
bar|bars => bar chart generate
show|plot|draw|graph ... as .. line|curve => line chart generate
plot|graph .. over time|months|years => line chart generate
plot|draw|graph => chart generate
trend|development|over time .. chart|plot|graph|draw => line chart generate
share|shares|percentage|slices|proportion .. chart|pie|draw|picture => pie chart generate
pie|cake of|with|chart => pie chart generate
correlation|relate|relationship|related .. chart|plot|draw|picture => scatter chart generate
distribution|spread .. chart|plot|draw|picture|of => histogram boxplot violin chart generate
steps|process|workflow|decision .. diagram|draw|picture|flowchart|chart => flow diagram generate
brainstorm|ideas .. map|picture|diagram|branch => mind map generate
who reports|report to => organization chart generate
most|how often|frequent .. words|terms .. picture|cloud|bigger|big => word cloud generate
overlap|common .. circles|sets|between|diagram => venn chart generate
causes|root|why .. diagram|fishbone|bones => fishbone diagram generate
goes|flows|flow from .. to .. width|widths|diagram|band|energy|money => sankey chart generate
drop|conversion .. stages|steps|funnel => funnel chart generate

# Version control
what|which .. i|we|have changed|change|touched|modified => diff status changes
what|anything .. uncommitted|unstaged|unsaved|dirty => diff status changes
since .. last .. commit|committed => diff status unstaged
who .. wrote|write|changed|change|touched|added|introduced|broke .. line|code|function|file|bug|#file => blame git
who|when .. line|lines|code .. from|changed|added|written => blame git
whose .. fault|line|code => blame git
why was .. line|code|function|added|changed => blame log commit
lost|deleted|gone|vanished|disappeared .. commit|commits|branch|work => reflog recover git
get|bring .. back .. commit|branch => reflog recover reset git
accidentally .. reset|rebase|deleted|deleting .. commit|branch|work|changes => reflog recover git
put|set|park|save .. changes|work .. aside|away|later|moment => stash
half done|finished|baked => stash
come back to it later => stash
take|apply|copy|grab .. one|single|only .. commit .. from|onto|to => cherry pick
throw|chuck|ditch|discard|drop ... changes|edits .. away|out => reset discard clean restore
start|open|make|cut .. branch => create / branch
switch|jump|go|change .. to|over|back .. branch|main|master => checkout branch switch
save|record .. changes|work .. message|with|as => commit
get|pull|fetch|download|grab .. latest|newest|colleagues .. changes|code|commits|version => pull fetch
send|upload|publish|get .. commits|code|local|changes .. to|up|server|remote|origin => push
push .. code|commits .. to|up => push
bring|get|make|keep .. branch .. up date|to => update branch merge rebase pull
make .. local copy|checkout of => clone
copy|get|bring|download .. repo|repository|project .. to|onto .. machine|laptop|computer => clone
what|list|show .. happened|commits|history|log .. repo|branch|yesterday|week|since => log commits list
mark|label|tag .. release|version|commit => tag create
work|check .. two|both branches .. same|once => worktree
have .. own copy|version of .. repo|repository|project => fork repository
untracked|leftover|stray files => clean

show|list|see|what .. last|latest|recent|newest .. commits => log list / commits
show|list|see|what .. commits .. since|from|of|last|by => log list / commits

# Code hosting
open|raise|make|start|submit|create .. pull|merge request => create / pull merge request
file|report|raise|open|log|submit|write .. bug|issue|ticket|defect|problem => create / issue ticket
file|report|raise|log it in|on|as|at => create / issue ticket
has|have|did .. anyone|anybody|somebody|someone .. report|reported|noticed|complain|raise|raised|seen|open => search
  / issues
has|is|was ... already|been .. reported|filed|raised|known => search / issues
known|existing|open bug|bugs|issue|problem|problems => search list / issues
is|are there .. bug|issue|ticket|tickets .. about|for|on => search / issues
what|which .. issues|tickets|bugs .. assigned|mine|on => list search / issues assigned
what|which .. am i|is|are .. working|assigned|on plate => my issues list assigned
ask|propose|offer|suggest|submit ... merge|merged|pull => create / pull merge request
open|make|put|raise|start|create .. pr|mr => create / pull merge request
what|which|are ... prs|pr|mrs|pull|merge .. open|waiting|pending|outstanding => list / pull merge requests
waiting|pending|outstanding for|on .. review|approval => list / pull merge requests review
send back|request changes => create review changes / pull request
request|ask|demand .. changes .. on|to|in|for => create / review pull request
look|looks good => approve review
take|withdraw .. approval .. back|away => unapprove
who .. still|must|has|have|needs .. approve|approval|sign|review|chase => approval state review / merge pull request
sign off .. mr|pr|merge|pull|#number => approval approve / merge pull request
get|put|land|bring ... merged|into|in main|master => merge pull request
conflict|conflicts|clash .. merge|pr|mr|branch => conflicts merge request
what|which .. files|changed|changes|change|does|did .. pr|mr|pull|merge => files diffs changes / pull merge request
comments|feedback|reviewers|said|say|discussion .. pr|mr|pull|merge => comments discussions notes / pull merge request
where .. function|method|class|constant .. used|called|defined|call => search / code
find|is .. repo|repos|repository .. about|for|like => search / repositories
stop|nobody|noone|protect|prevent|forbid|can ... push|pushing .. to|directly|straight => protect branch
thumbs up|down => reaction emoji add
react|answer with|thumbs => reaction emoji add
new version|release of|#number => version release create

# Tickets and boards
move|push|put|set|get|shift|bring ... along|forward|on => transition issue status
ready for review|test|testing|qa|deploy|merge => transition status issue update
move|set|put|drag|change ... to|in|into progress|done|review|testing|qa|blocked|closed|resolved => transition status
  issue
is|are|was|were done|finished|fixed|resolved|shipped => transition update complete
close|resolve|finish|reopen|shut .. ticket|issue|bug|story|#number => transition update close / issue
i spent|worked|booked .. #number .. hours|hour|minutes|days|day|h => add / worklog time log
book|log|track|record|clock .. #number .. hours|hour|minutes|h => add / worklog time log
how much|many|long time|hours .. spent|worked|logged|took|booked => get / worklog time
who|give|hand|assign ... to|for|take|takes|over .. ticket|issue|bug|task|story => assign / issue
hand|give|pass ... over to|#who => assign
put|take|pull|add .. in|into|to .. sprint => add / issues sprint
current|running sprint => sprint issues get
out|back of|to|into .. sprint|backlog => move backlog issues
blocked by => link issue create
duplicate of => link issue create
keep|put me .. posted|updated|loop|informed => watcher add watch subscribe
tell|notify|let me .. when|whenever|as soon => watch subscribe alert notification
stop .. notifying|telling|pinging|bugging me => unwatch unsubscribe remove watcher
what|which .. status|states .. can|could|possible .. to|move => transitions get
how .. long|late|time .. sla|left|breach => sla get issue
has|does|did anyone|anybody|somebody .. read|look|see|visit|view|open => views page statistics
how many|often .. people .. read|look|see|visit|view|opened => views page statistics
older|earlier|previous|last version|versions|revision .. of|page|document|file => history versions
what changed .. between|since|from => diff history
customer|service desk => service desk request customer

# Chat
let #who .. know => send post / message
tell #who .. about => send post / message
text|message|sms|dm|ping #who => send / message sms
text .. phone|number|mobile|about => send / message sms
send|shoot .. text|sms => send / message sms
tell|inform|notify|ask|warn .. channel|team|people|everyone|everybody|colleagues|group|slack|chat => send post /
  message channel
announce|broadcast|post|shout ... to|in|on => post send / message channel
what .. i .. miss|missed => history messages channel get
catch me up|on => history messages recent get
what .. people|they|everyone|channel|team .. talking|saying|discussing|said|say|discussed .. about|in|on => history
  messages channel get
what|anything|happened|going .. in|on .. channel|chat|group|room => history messages channel get
answer|reply|respond .. in|to .. thread => reply thread message
what did .. answer|reply|say .. in|to .. thread|message|question => thread replies get
set|start|make|open|create .. group|chat|room|channel .. with|for|called => create / chat group channel
who .. in|on .. channel|chat|room|group => members users chat channel
ring|phone|call .. #who => call phone outbound
ring|phone|call ... and|to tell|ask|say|them|up|number => call phone outbound
make|place .. phone call|calls => call phone outbound

# Web
find|search|look ... about|mentioning|containing|regarding => search find
find|search|look|get|give|gather|collect .. information|info|articles|article|facts|sources ..
  about|on|regarding|concerning => search web
look|search|check|google|find ... up|on|in .. web|online|internet|google => search / web
google|bing for => search / web
what .. happening|happened|news|going|latest .. with|on|in|about|to|world => search news web
did|has|have|is anything .. happen|happened|new .. with|about|to|in => search news web
headlines about|on|from|of|#time => search news web
news|word about|from|of => search news web
who won|win|is winning => search web news
how|what did|was|is .. game|match|election|score|race => search web news
when|where|which|who is|was|did|does|are ... opening|open|opens|start|founded|born|died|invented|released => search
  web
what|how do|are .. opening|business hours|times => place details hours
when .. open|opens|close|closes|shut|shuts => place details hours search
read|open|fetch|get|load|check|see|what|summarise|summarize .. page|site|url|link|website|article|http|https =>
  fetch read page url content
what does|is .. page|site|website|article|link .. say|about => fetch read page url content
go through|over .. every|all|whole|entire .. page|pages|site|website => crawl site pages
every|all|whole|entire page|pages .. site|website|docs => crawl site pages
all|list|which .. links|urls|pages .. site|website|on => map site urls links
pull|get|extract|grab|collect ... from .. page|site|website|list|shop => extract scrape page data
tell|let|notify|alert|watch ... changes|change|drops|drop|update|updates .. page|site|price|website => monitor watch
  create page
keep|have .. eye on => monitor watch create
in|really|dig|deep depth|dig|dive|research|thoroughly => research deep
thorough|deep|detailed|full|proper|in depth report|research|analysis|dive|look => research deep
picture|pictures|photo|photos|images of|showing|from .. web|online|internet => image search
videos|video|clips|youtube of|about|on => video search
where .. can|do|could .. i|we .. eat|buy|get|find|go|stay|park|drink => search places local nearby
good|best|nice|nearest|closest|cheap ..
  restaurant|cafe|pub|bar|bakery|hotel|pharmacy|garage|shop|place|dentist|plumber => search places local nearby
anywhere|somewhere .. to|for|near|around => search places local nearby
restaurant|cafe|pub|bakery|pharmacy|hotel|chemist|supermarket .. near|nearby|around|in|close => search places local
  nearby
what do people|reviews|customers .. think|say .. of|about => reviews place details
is .. it good|worth => reviews search

# Browser
open .. page|site|website|url|link|http|https|www => navigate open page
log|sign|get me|us in|into|on => fill form click login
fill|complete|type|enter|put ... form|field|box|input|fields => fill form type
press|hit|click|push|tap .. button|link|ok|submit|icon => click
pick|choose|select ... from|in .. list|dropdown|menu => select option
take|make|grab|get|show .. picture|photo|image|shot|screen|screengrab of .. page|site|screen|website|browser =>
  screenshot capture take
how|what does ... look|looks .. like|on .. phone|mobile|tablet|ipad|screen => resize emulate screenshot
what .. look|looks .. like => screenshot render view preview
how does ... look|render => screenshot render view
pretend|act|as|like|on .. iphone|android|phone|mobile|tablet => emulate resize device
page|site|website is|so|very|loads|load|takes|feels|got .. slow|slowly|long|sluggish|ages => performance trace
  lighthouse
why .. page|site|website|it slow|long|takes|load => performance trace analyze
which|what requests|calls .. page|site|browser|made|make|makes|fail|failed => network requests list
http|https|network|api requests|calls|traffic|request .. page|site|browser|makes|make => network requests list
errors|error|warnings|red|messages in .. console|devtools => console messages logs
run|execute|evaluate .. javascript|js|script|snippet .. on|in|page|browser => evaluate script
go|one|take|step page|step|me|back => navigate back
yes|ok|confirm|accept|dismiss|close .. popup|dialog|alert|banner => handle dialog
wait|until|till .. appears|loaded|shows|there|visible|finished => wait
record .. screen|session|video|clicks => screencast record codegen
memory|ram leak|leaks .. page|tab|site|browser => heap snapshot memory
accessible|accessibility|seo|lighthouse => lighthouse audit

# Databases
how many ... were|was|have|went|placed|sold|registered => query count / database
how many ... table|database|db|collection|rows|records|customers|orders|users => query count / database
which|what|top|average|best .. customers|orders|products|users|sales ... database|table|db|data => query / database
which|what .. tables|table .. are|exist|there|we|have|in => list / tables database
which|what .. columns|fields|column|field .. has|have|does|in|are|of|there => describe columns schema / table
what .. structure|layout|shape of .. table|database|collection => describe schema / table
what .. in|inside .. table|collection|database => query read list / table
put|insert|add|log|save|store|write|record ... into|in|to .. table|database|db|sqlite => write insert query /
  database table
change|update|set|correct|fix ... in|inside .. table|database|db|row => write update query / database table
delete|remove|drop ... from|in .. table|database|db => write delete query / database table
why .. query|queries .. slow|long|takes|takes => explain query plan performance
speed|make ... query|queries .. up|faster => explain query index
which|what .. collections|databases|dbs|indexes|indices .. have|there|got|exist|are => list / collections databases
  indexes
how much|big|large .. space|memory|database|collection|disk|ram|size => stats size info
how much memory|ram .. eating|using|use|uses|taking|eats => info memory stats
group|grouped by .. sum|count|total|average|avg => aggregate group
anything|what|something .. cached|stored|saved|kept|under|in|at .. key|under|cache|redis => get scan / key value
what .. under|behind|in|at .. key => get / key value
is|are .. cached|stored under|in|as => get / key value
keep|cache|store|remember|save ... for .. seconds|minutes|hour|hours|minute|while => set expire / key value
forget|expire|expires|vanish|disappear|gone|delete ... after|in .. seconds|minutes|hour|hours|#number => expire set
  / key
which|what|all|show|list .. keys .. start|begin|match|redis|pattern => scan keys
get rid .. of .. keys|key => delete / keys
leaderboard|highscore|high scores|score|ranking => sorted set zadd zrange
similar|resemble|like|closest|same to|meaning|like .. documents|texts|text|vectors|passages => query similarity
  search / vector documents
passages|passage|texts|documents .. about|deal|deals|similar|meaning => query search / documents
who|what|how .. connected|linked|related .. to|with => read cypher query / graph relationships

# Cloud and operations
who|what|which|am|is|can|may|could .. allowed|permitted .. to|do => simulate policy permission
can|could|may .. role|user|account|bot|service .. delete|read|write|access|create|see|do => simulate policy permission
what .. may|can|allowed .. role|user|account|bot => list get policies role
new|joins|joined|joining|starts .. colleague|employee|starter|person .. account|user|needs => create / user
left|leaving|leaves|fired|quit .. company|team|us => delete / user
give|make|create|issue .. access|api keys|key|credentials => create / access key
what|which .. running|exists|exist|deployed|there|sitting|got in|on ..
  cluster|account|group|subscription|namespace|cloud => list get resources
is|are .. pods|pod|service|deployment|container|app .. up|running|healthy|ok|alive => get list / pods kubectlget status
what|which .. pods|pod|containers|services|deployments .. running|up|crash|crashing|down => get list / pods kubectlget
keeps|keep|always crashing|restarting|dying|failing => logs describe events troubleshoot
why ..
  pod|container|deployment|service|task|tasks ..
  crash|crashes|crashing|restart|restarting|fail|fails|failing|down|not|start|die|dies => logs describe events
  troubleshoot
nobody|noone|don know|knows .. why => troubleshoot analyze
find|work|tell|figure .. out why|what|wrong => troubleshoot diagnose analyze
rolled|went|fell back|wrong|down => troubleshoot failure
get|shell|log|hop|jump|look .. inside|into .. pod|container => exec pod
run .. command|shell|inside|in .. pod|container => exec pod
everything|all|workloads|pods off|from .. node => drain node management
take|empty|evacuate|drain|cordon|free .. node .. out|off => drain node management
swapping|replacing|maintenance|reboot|rebooting .. node => drain node management
more|fewer|additional|extra|double .. copies|instances|pods|replicas => scale replicas
scale|bump|crank|run ... up|down|to .. copies|instances|pods|replicas => scale replicas
go|roll|put|get ... back .. to|previous|last|older version|release|build => rollback rollout
undo|revert .. deploy|deployment|release|rollout => rollback rollout undo
reach|open|access|see ... from .. laptop|machine|computer|localhost|local => port forward
on .. local port|localhost => port forward
how much .. cost|costs|pay|charge|expensive|price .. month|run|running|would|will|aws|cloud|azure => pricing cost
  price
cheaper|cheapest|expensive|save money => pricing cost compare
what|which|is .. alarms|alarm|alerts .. firing|going|active|ringing|triggered|red => active alarms get
going off|red|firing => active alarms get
how often|when did|was .. alarm|alert .. fire|fired|go|ring|trigger => alarm history
cpu|memory|load|traffic|latency|requests .. last|over|of|past .. hours|hour|days|week|day => metric data get
what .. errors|logs|log|exceptions .. say|last|show|in|from => logs query search errors
errors|error|exceptions in .. logs|log|production|prod => logs query search errors
where|keep|store|put .. secret|secrets|password|passwords|api key => secrets keyvault
check|validate|lint|verify|is .. template|config|yaml|manifest|workflow .. ok|valid|correct|right|before|errors =>
  validate template
build|pipeline|ci|main|master|workflow|tests .. green|red|passing|broken|failing|pass|fail|ok => pipeline status
  latest / get
is .. main|master|build|pipeline|ci .. green|red|passing => pipeline status latest
why .. build|pipeline|ci|job|workflow|tests .. fail|failed|red|broken|break|failing|fails => failure logs build get
what .. broke|breaking .. build|pipeline|ci => failure logs build get
try|run|start|kick ... again|over|once more => rerun retry restart
again|retry|rerun|repeat .. build|pipeline|job|jobs|workflow|tests => rerun workflow
kick|set|trigger|start|fire .. off|build|pipeline|ci|deploy => run trigger / pipeline
flaky|unstable|unreliable|intermittent|randomly|sometimes .. tests|test|fail|pass => flaky tests find
tests|test .. pass|passing|green|fine .. one|fail|then|next|sometimes => flaky tests find
sometimes|randomly .. fail|pass|fails|failing => flaky tests find
wasting|wasted|oversized|idle|underused|unused|too big .. money|machines|executors|resources|class => underused
  resource
which|what .. crashes|errors|exceptions|bugs .. users|production|app|most|new|today|week => search issues errors
  events
how many users|people .. hit|affected|see|seen .. by => search issues events
root cause => analyze troubleshoot

what|which|show|list|see .. pods|deployments|namespaces => get list / pods / kubectlget

# Maps, travel, weather, time
latitude|longitude|coordinates .. of|for .. address|place|city|town => geocode
go to .. url|link|address|page => navigate
how do|can|would i|we get|drive|walk|go|travel .. to|from => directions route
way|route|directions|quickest|fastest|shortest .. to|from|between|way|route => directions route
how far|long ... from|to|between|away|drive|walk|cycle|by => distance directions duration
how high|tall .. up|is|are|mountain|station|village|peak => elevation height
how .. above sea|level => elevation height
where .. is|on|are .. map|located|lies|exactly => map show geocode location
coordinates|latitude|longitude|lat|gps of|for|from => geocode coordinates
address|street at|of|for .. coordinates|point|latitude|#number => reverse geocode address
what .. there|is at #number #number => reverse geocode address
what time|hour|o .. in|there|it|now => current time get
how late|early is it => current time get
when .. is|it .. #time .. here|there|in .. in|there|here|for|me => convert time timezone
#time here|there .. in|is|for => convert time timezone
in .. local time => convert time timezone
umbrella|rain|raining|sunny|snow|cold|hot|warm .. outside|tomorrow|weekend|going|will|today => weather forecast
trip|holiday|journey|travel to .. plan|itinerary => plan itinerary directions

# Sound, pictures, three dimensions
read|say|speak ... out|aloud loud => textto tospeech / speech voice
read ... aloud => textto tospeech / speech voice
out loud => textto tospeech / speech voice
what does .. sound|sounds like => voice play audio
voice|say|narrate|narration|voiceover|audiobook .. of|for|over|text|it|in => text speech voice
mp3|wav|recording|interview|podcast|voicemail ... as|to|into|in .. text|words|writing|transcript => speechto totext
  / transcribe speech
  transcribe
what .. said|say|says in|on .. recording|interview|podcast|voicemail|audio|mp3 => speechto totext / transcribe speech
write|type ... out|up|down .. recording|interview|podcast|said => speechto totext / transcribe speech
transcript|transcribe|subtitles of|for => speechto totext / transcribe speech
noise|background|hum|hiss .. remove|rid|out|from|clean|without => isolate audio
sound|noise|effect of|like .. effect|rain|door|thunder|explosion|wind|barking => sound effects generate
song|music|tune|jingle|soundtrack|melody|beat .. about|for|with|like|to|write|make => compose music
write|make|compose .. song|music|tune|jingle|soundtrack => compose music
clone|copy|imitate .. voice => voice clone
voices|voice .. choose|which|available|there|accent|female|male => search voices
draw|paint|generate|make|create .. picture|image|painting|photo|illustration of|with|showing => generate image
model|object|thing .. three|3d|scene|blender => model scene 3d
in|into|to scene => scene import object asset
let|show me see|have .. what|how => look capture preview screenshot
design|mockup|frame|screens|colours|colors .. figma => figma data design
icons|images|logo|assets|pictures .. figma|design => download images

speech|audio|voice|spoken|narration .. from .. text|script => textto tospeech / speech
text|script|words .. to|into|as .. speech|audio|voice => textto tospeech / speech
text|transcript|words .. from .. speech|audio|recording|voice => speechto totext / transcribe
speech|audio|recording|voice .. to|into|as .. text|transcript => speechto totext / transcribe

# Research and documentation
papers|paper|preprint|preprints|studies on|about|by|from => search papers
who cites|cited|cite|quotes|references => citation graph papers
cited|citing|cites|cite .. by|paper|work => citation graph papers
bibtex|citation|reference|references .. for|of|entry|format => export citations
let|tell|notify|alert ... new|fresh papers|paper|work|publications => watch topic alert
what .. abstract|paper|article .. say|says|about => abstract read paper
how do|does|can|would|should|to i|you|we|one|it .. work|use|do|write|call|configure|set|in|with ...
  react|next|vue|django|flask|library|framework|package|api|sdk|version|newest|latest => docs documentation query
  library
how .. does|do .. work .. in => docs documentation query search
current|up date|newest|latest documentation|docs|manual => docs documentation query
docs|documentation|manual|guide|instructions for|of|on|about|says => docs documentation search
memory|knowledge|training .. out|old|outdated .. date => docs documentation search web
look .. it up => search docs documentation
best practices|practice => best practices guidance
explain|what is|means|mean ... field|kind|resource => explain resource documentation

# Customers, forms, lists
survey|questionnaire|poll|quiz|vote|form .. make|create|set|about|for|on => create form
make|create|set|do|run .. survey|questionnaire|poll|quiz => create / form
who|how|what|many .. answered|filled|replied|responses|answers|voted|vote|responded ..
  form|survey|questionnaire|poll|to|on => form responses list get
answers|responses|results .. form|survey|questionnaire|poll => form responses list get
biggest|largest|best|top|most .. customers|clients|accounts|deals => search list objects
deals|deal|leads .. in|at|stage|closing|over|worth => search objects deals
log|record|note|write ... call|meeting|conversation|visit .. with|on|from => create engagement note
note|write|log|record ... on|to|at .. contact|deal|customer|company => create engagement note
mark|set|flag|tick|put .. as paid|done|shipped|sent|complete|finished|closed|open|urgent|important => update status
  record
set|change|switch|correct|put ... status|stage|field|price|value .. to|as|of => update record
leave|add|put|write .. comment|remark|note .. on|in|to|there => create comment add
which|what .. rows|records|entries|items|products .. where|with|over|under|have => search list query records
add|put|enter|insert .. row|record|entry|line .. to|in|into|for => create add record row
add|new|extra|another .. column|field .. to|in|called|for => create field column
does|is|still|if .. it|theme|code check|valid|validate out|still => validate check

# Numbers and reasoning
#number plus|and #number => sum add calculate
add|sum #number .. #number => sum add calculate
add up|together => sum add calculate
what .. #number minus|times|divided|percent|over #number => calculate calculator
#number percent of => calculate calculator
#number times|minus|divided => calculate calculator
square|root of => calculate calculator
think|reason|work|go .. through|about .. carefully|step|steps|problem|it => thinking reasoning sequential
break ... into|down .. steps|parts|pieces => thinking steps sequential
step by step => thinking sequential steps
hard|tricky|difficult|complex problem|question|decision => thinking reasoning sequential
weigh|pros|cons up|and|against => thinking reasoning

# Verbs of conversation
chuck|bung|whack|stick|pop|shove|sling|slap|lob|dump|stuff|toss|plonk .. in|into|on|onto => add insert create put
chuck|knock|throw|whip|rustle|cook|bash|pull|put|slap|cobble together|up|out => create make generate
nuke|zap|axe|scrap|bin|ditch|wipe|trash|torch|obliterate => delete remove clear
get shot|rid of => delete remove
chuck|throw|toss|kick|boot|cut|take .. out|away|off => delete remove
snag|nab|fish|dig|yank .. out|from|up => get fetch extract
hunt|track|dig|root|rummage|ferret .. down|out|around|through|for|up => search find
dig through|into => search query analyze
peek|glance|gander|squint at|into|inside => view get show
have|take .. look|peek|gander .. at|in|into => get view show
tweak|tinker|fiddle|touch|adjust|polish => edit update modify
fire|spin|boot|crank|bring|stand .. up => start create run
flip|flick|toggle|turn .. on => enable start update
flip|flick|toggle|turn .. off => disable stop update
nudge|poke|ping|buzz|prod => notify message send
hang|hold on|onto => keep save store
fill|bring .. in|up .. on|to speed|date => history recent summary get
go|run over|through => read list review
spell|lay|set|map .. out => explain describe outline
sort|figure|clear|straighten .. out|up => fix resolve
hook|wire|link|connect|tie .. up|together|to => link connect create
team|pair|join .. up|with => link merge
break|split|divide|chop|cut .. up|into|apart => split divide
narrow|filter|whittle .. down => filter search
blow|scale|make .. up|bigger|larger => resize scale
shrink|squash|squeeze|compress => compress resize
put|bring|get .. back => restore revert
get|make|have .. ready => prepare create
check|see|find out|know|tell|look .. if|whether => check get verify
make sure|certain => check verify validate
double check => verify validate check
is|are .. correct|valid|legit => validate check verify
what .. wrong with => diagnose troubleshoot validate
what .. in|inside .. there|it => list get contents
how many|much .. left|remaining => count usage quota get
have i|we got .. left => usage quota subscription credits
ran|run|running out|low .. of => usage quota
die|expire|vanish|disappear|go|gone .. by|in|after itself|hour|minutes|seconds|day|while => expire delete
shove|push|slip .. straight|directly .. into|to|on => push

# What people call things
address book|phonebook|rolodex => contacts search
mobile|cell|landline .. contacts|book|number => contact search get
what|whats ... mobile|cell|landline|extension => contact search get
diary => calendar events
peek|see|look|view ... calendar|diary => calendar permission share
let .. see|peek|look|view ... calendar|diary => calendar permission create share
set|put|mark .. me .. as away|off|out => out office automatic reply
i|we off|away .. from .. to|till|until => out office automatic reply
not|aren|isn around .. from|until|till|to => out office automatic reply
away|holiday|leave message|reply|notice => out office automatic reply
guest list|speaker|seat => list records
to|wants|wanted be able .. change|edit|see|read|open => permission access share manage
should|could|needs be able .. change|edit|see|read|open|push => permission access share manage
edit|view|write|read|comment rights|access|permission => permission access share manage
invoice|receipt|ticket|contract|cv|resume .. mail|mailed|email|emailed => attachment mail message get
mailed|emailed ... pdf|file|document|attachment|invoice|photo|photos => attachment get mail
save|download ... onto|to .. computer|laptop|disk|machine|desktop => download get save
little|small|tiny number|numbered note|notes => footnote add
note|notes .. bottom .. page => footnote add
footnote|endnote => footnote add
profit|total|result|cell|sum .. lands|land|comes|come|equals|hits|reaches|exactly .. on|at|to|#number => goal seek
what .. need|must|have|would .. so to .. profit|total|result|cell => goal seek
slides|deck on|about|for => presentation slides create generate
sleepy|soft|calm|deep|british|female|male|friendly voice|accent => text speech voice
bedtime|story|poem|book|article|text|script .. out|voice|aloud|loud => text speech voice
only want .. voice|talking|speech => isolate audio voice
lawnmower|traffic|wind|barking|hum|noise|hiss .. recording|podcast|audio|take|video|interview => isolate audio noise
ring|phone|call|dial|bell .. restaurant|garage|shop|doctor|dentist|plumber|office|hotel|#number => call outbound phone
robot|agent|bot|assistant to|should .. ring|call|phone => outbound call agent
decent|tasty|lovely .. near|around|in|close|by => search places local
ramen|pizza|sushi|curry|coffee|tacos|brunch|burger|noodles|kebab|beer|cocktails|vegan near|around|in|close|by|place
  => places local restaurants search
open late|now|today|sunday|sundays => places search hours
places|spots|pins|stops|points|lat|shops|locations .. on .. map => pin map generate points
route|trip|path|journey .. on .. map => path map route
every|each|single|whole|all .. page|pages .. of|on|under|from => crawl site pages
grab|save|copy|download .. every|all|whole|entire .. page|pages|site|website => crawl site
before .. vanishes|disappears|gone|offline => crawl archive
files|file|documents|document .. in|with .. name|filename|title => search files name
file|files|document|documents .. with|containing|called|named .. in|on|somewhere|laptop|computer => search files
  filesystem
on .. laptop|computer|pc|mac|machine|desktop => local file filesystem
did|have|what|when i|we .. tell|told|mention|mentioned|say|said .. you => search memory knowledge nodes
green|red|passing|failing .. pr|pull|mr|#number => status checks pull request
checks|ci|tests|pipeline .. pr|pull|mr|merge => status pull merge request
straight|directly|directly .. into|to|on .. main|master|production => protect branch push
out .. door => done finished released
shift|move|drag|bump|kick .. over|across to => transition move status
went|goes|gone|going bang|wrong|boom|down|haywire|mad|nuts|sideways|pear => error failure logs
what .. wrote|writes|printed|prints|spat|logged|logging out => logs query
lambda|function|service|app .. wrote|logs|log|logged|crashed|error|errors => logs query
ballpark|roughly|estimate|quote|guesstimate => pricing cost estimate
ec2|box|boxes|vm|vms|instance|instances|machine .. for|cost|month|price|ballpark|hour => pricing cost
copies|instances|replicas of .. deployment|service|web|pod|app => scale replicas
need|want|have #number copies|instances|replicas|pods => scale replicas
instead|rather of|than #number => update scale
into|in .. docker|container|image => containerize container image
where .. begin|start => guidance learn
sms|text message|messages => sms send communication
text .. all|every|volunteers|customers|clients|parents|folks => sms send communication
row|line|entry|item .. in|into|to .. airtable|base|list => create record
another|new|extra|one more .. row|line|entry|record => create add insert record row
lines|entries|messages .. from|in|with|of .. past|last hour|day|minutes|hours|week => search logs query
signed|sign up|ups|joined|registered .. last|past|since|per => query users
info|knowledge|data|memory .. out|outdated .. date => docs documentation query
very|brand latest|newest|new .. react|next|vue|angular|svelte|django|rails|python|library|framework => docs
  documentation query library
how do|does|can ... work|works|use in ..
  next|react|vue|angular|svelte|django|rails|flask|pandas|spring|tailwind|typescript => docs documentation query
  library
lat|long|lats|longs|latlong|gps|coords => coordinates geocode
#time .. in .. what|when .. for|in|here|there => convert time timezone
#time .. london|chicago|paris|tokyo|berlin|york|sydney|wellington|dubai|mumbai|madrid|rome .. here|there|for|what =>
  convert time timezone
what|when .. #time .. over there => convert time timezone

# Money and shops
invoice|receipt|bill|refund .. send|create|make|issue => invoice create
order|orders .. shipped|sent|delivered|arrived => order status
discount|voucher|promo code => discount code create
stock|inventory|left .. product|products|shop|warehouse => inventory products

# Meetings recorded, voices, media
dub|dubbing|voiceover => speech text voice
jingle|theme|backing track => compose music

# Organising
sort|organise|organize|tidy|arrange .. by|into|in|folders => move sort organize
group|bundle|lump .. together => group merge
merge|combine|join|stitch|glue|stick .. together|into .. one|cell|cells|columns => merge combine
archive|hide .. old|done|finished => archive
subtask|subtasks|child|parent .. of|under|to => link parent
epic|initiative|theme .. under|in|into|to => link epic
deadline|due date .. set|change|move|push|extend => update due date
estimate|points|story .. set|give|put => update field estimate

# Text and language
translate|say|write .. in|into|to .. german|french|spanish|italian|dutch|polish|english|japanese|chinese =>
  translate text
summarise|summarize|sum|boil|condense .. article|page|text|document|thread|video|up|down => summarize summary
tldr|gist|summary of => summary summarize
rewrite|reword|rephrase|shorten => edit rewrite text
spelling|grammar|typos => check text
heading|title|paragraph|sentence .. to|in|at|under|after|before .. document|report|#file => add insert paragraph
  heading
say|says|saying ... in|at .. top|end|bottom|beginning|start .. of => insert add text
underneath|below|under|after|above .. heading|section|paragraph|title => insert text near header

# Design and code
css|style|styles|colour|font of .. element|button|page => css styles computed
which|what .. request|requests|calls .. fail|failed|fails|404|500 => network requests console
hover|point|mouse over => hover
drag|drop ... onto|to => drag drop
upload|attach|choose .. file|photo|cv .. form|page|site => file upload
new|another tab|window => new page tab
iphone|ipad|android|phone|mobile|tablet .. size|view|screen|version|layout => resize emulate
tables|columns|rows .. look|looks|structure|schema => schema describe table
er|schema diagram => schema diagram
load|import|read|get .. csv|excel|parquet|json .. into|in|to => import table csv
dump|export|save|get ... as|to|into|in .. csv|json|excel => export csv
vector|embedding|embeddings|semantic|similarity => vector search similarity
nearest|closest|similar .. to|documents|products|texts|items => similarity search vector
who .. knows|related|connected|friends|follows .. with|to => graph cypher query relationships
publish|send|broadcast .. channel|topic|subscribers => publish channel
queue|stream|list .. push|append|add|pop|take => lpush rpush list stream

# Cloud
spin|bring|set|stand .. up .. bucket|database|cluster|vm|server|queue => create
who .. can|has .. access|permission|rights .. bucket|account|subscription|group => role policies access list
health|healthy|outage|down .. service|region|azure|aws|resource => health resource status
certificates|certs|secrets|keys .. expire|expiring|vault => keyvault certificate secret
limits|limit|quota|quotas .. hit|hitting|left|reached => quota usage
terraform|bicep|cloudformation|cdk .. best|check|validate|example|sample|help => template best practices documentation
image|container .. registry|ecr|acr => registry container image
load|stress test => load testing
why .. expensive|bill|costs .. so|high|much => cost pricing analysis
restart|bounce|recycle|cycle .. pod|pods|deployment|service|app => rollout restart
tail|follow .. log|logs => logs get
what .. happened|happening .. cluster|namespace|pod|pods => events get
"""

RULES: tuple[str, ...] = tuple(_INTENTS.replace("\n ", " ").splitlines())
"""Rules and comments, a line each; above, a line that begins with a space goes on with the one before."""
