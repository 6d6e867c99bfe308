"""Words of everyday English that say little about a tool, however rare they are in a catalogue. Data of this project.

Written for this project from general knowledge of how people talk; no frequency list was copied. How rare a word is
among tools tells how much it says only for words of the trade: "already" or "husband" is rare there, and says nothing.
"""

from __future__ import annotations

_TIMES = """
afternoon afternoons ago april august breakfast christmas daily dawn decade december earlier early easter evening
evenings february fortnight friday fridays hour hours january july june late lately later lunch lunchtime march midday
midnight minute minutes monday mondays month monthly months morning mornings next night nightly nights noon november
nowadays october overnight past quarter recently saturday saturdays season second seconds september soon spring summer
sunday sundays thursday thursdays today tomorrow tonight tuesday tuesdays wednesday wednesdays week weekday weekdays
weekend weekends weekly weeks winter year yearly years yesterday
"""

TIMES: frozenset[str] = frozenset(_TIMES.split())
"""Names of times: when something is wanted is rarely what is wanted."""

_PEOPLE = """
aunt aunts babies baby boss bosses boy boyfriend boys brother brothers buddy child children colleague colleagues
cousin cousins coworker coworkers dad daughter father fiance fiancee flatmate folks friend friends girl girlfriend
girls gran grandad granddad grandma grandmother grandpa granny guy guys husband intern kid kids ladies lady landlady
landlord mate mates mom mother mum nan nana neighbor neighbors neighbour neighbours nephew niece parents partner
roommate sister sisters son sons stranger uncle wife woman women
"""

PEOPLE: frozenset[str] = frozenset(_PEOPLE.split())
"""Whom it is about; the words that name users of a system are not among them."""

_WEAK = """
able absolutely accidentally across actually ages ahead aka almost alone along alongside already alright also although
altogether always amazing among angry annoyed annoying anybody anymore anyone anyplace anyway anyways anywhere apart
apparently appear appeared approximately around asap aside asleep assume ate automatically away awful awfully awhile
aye bad badly barely became become becomes becoming began beginning begun behave beside besides better beyond bigger
bit bits blimey bloke bloody bored boring bother bothering bothers bottom bought bring bringing brings broke broken
brought bunch busy buy came cannot care cared careful carefully cares carried carries carry carrying catch caught
cause caused causing certain certainly chance chances chap cheap cheers choose chose chosen clever close closer come
comes comfortable coming common completely confused confusing consider considered couple crazy curious currently damn
dang dare dark darn deal dealing deals dealt decent decide decided deep definitely depend depending depends desperate
despite die died differently difficult directly dirty does doubt dozen dozens dreadful driving drove due dying easier
easily easy eat eaten eating eats else elsewhere embarrassing enough entirely especially even eventually ever
everybody everyone everywhere exactly excellent except exciting expect expected expecting expensive extra extremely
face facing fact fair fairly fallen falling fancy far fast faster favour fed feel feeling feels feet fell felt few
fewer figured final finally fine finish finished finishing fit fits five fix fixed flat forever forget forgetting
forgot forgotten former fortunately forward forwards found four frankly freezing frequently fresh friendly fun funny
gave generally gently getting giant giving glad goes going gone gonna goodness gosh gotta gotten grateful greatly grew
ground grow growing grown had half handy hang hanging happen happened happening happens happily happy hard hardly hate
hated hates hating hear heard hearing heavily heavy held helpful helping helps hide highly hilarious hold holding
holds honest hoped hopefully hoping horrible huge hundred hundreds hungry hurts idea ideas imagine immediately
impossible indeed innit inside instead intend intended interested interesting involved joke keep keeping keeps kept
kicking killing kinda knackered knew know knowing known knows lads largely larger last lasts laugh lay lazy lead least
leave leaves leaving led left less lesson lie life lift lightly liked likely likes literally little lives living
longer look looked looking looks loose lose losing lost loud loudly love loved lovely loves low lower lucky lying mad
made magic mainly makes making manage managed matter matters mean meaning means meant meantime meanwhile mention
mentioned mess messy met middle mighty mildly mind mine minor miss missed misses missing mistake moment mostly mouth
moved moving myself naturally near nearest nearly neat necessarily necessary needed needing neither nervous never
newfangled nice nicely nine nobody noisy none nonsense normal normally nothing notice noticed nowhere nuts obvious
obviously occasion occasionally odd odds often old older ones ongoing onto opposite ordinary others otherwise ought
ourselves outside overall owe own particular particularly perfect perfectly perhaps personally pick picked picking
piece pieces place plain plainly plenty plus polite politely poor possible possibly precisely prefer preferably pretty
previous previously probably promise promised proper properly proud pull pulled pulling purpose push put puts putting
quick quicker quickly quiet quietly quite ran rang rare rarely rather reach reached ready realise realised realize
realized really reason reasonable reckon regularly relatively remain remaining remains rest rid ridiculous ring
ringing risk rough roughly round rubbish rush sad safely said sake sat saw say saying says scared second secondly seem
seemed seems seen sees seldom self sense sent separate separately serious seriously settle settled seven several shake
shame sharp shocked shout shown shut sick side silly simple simpler simply since single sit sits sitting situation six
sleep sleeping slight slightly slow slowly small smaller smart smooth smoothly soft softly solid somewhat somewhere
sooner sore sorts sound sounds spare speaking specifically spend spending spent spot stand standing stands started
stay stayed staying stays steady step stick sticking still stood stop stopped straight straightforward strange strong
struggle struggling stuff stupid suck sucks suddenly suit suitable suppose supposed sure surely surprised surprising
swap swapping swear tad take taken takes taking talk talking talks tall tell telling tells ten tend terrible terribly
terrific thankful themselves therefore thick thin thinking third thorough thoroughly thought thousand thousands three
threw throughout throw throwing thrown thus tidy till tiny tired together told ton tonne tons took top totally touch
touched toward towards tried tries trip trouble true truly trust try trying turned turning turns twelve twenty twice
two typical typically ugly unable unfortunately unless unlike unlikely until upset upside urgent usual usually utterly
various wait waited waiting waits wake walk walked wander wanting warm wasted watching way ways weak wear weird
welcome went whatever whatsoever whenever wherever whether whichever whoever wide wild willing wish wished wishes
within without woke won wonder wondered wonderful wondering wooden word wore work worked working works worn worried
worries worry worrying worse worst worth worthwhile wrong yeah yep yet young younger yourself
"""

_KEPT = """
buy close daily depend die family finish first fix held helpful hide hour ideas joke keep kicking last lesson life
look low lower manage meaning month months moved moving nearest odds past plus previous pull push risk second single
sleep sound speaking spot stay step stop tall thinking third three top trip trust turn two wait waiting walk word work
year
"""

WEAK: frozenset[str] = (frozenset(_WEAK.split()) | TIMES | PEOPLE) - frozenset(_KEPT.split())
"""Words that count little, and that are never misspelt words of the catalogue."""
