"""The actor kit: mailboxes, actors, cells that always hold the newest value, and how want of resources is met."""

from actors.kit.actor import Actor as Actor
from actors.kit.actor import StartSoon as StartSoon
from actors.kit.cells import AnyOf as AnyOf
from actors.kit.cells import Feed as Feed
from actors.kit.cells import Latest as Latest
from actors.kit.cells import Signal as Signal
from actors.kit.fairness.client_quota import ClientQuota as ClientQuota
from actors.kit.fairness.gate import Gate as Gate
from actors.kit.fairness.gate import Turn as Turn
from actors.kit.fairness.quota import Quota as Quota
from actors.kit.fairness.shares import Shares as Shares
from actors.kit.fairness.starts import Starts as Starts
from actors.kit.fairness.turnstile import Turnstile as Turnstile
from actors.kit.mailbox import Address as Address
from actors.kit.mailbox import Ask as Ask
from actors.kit.mailbox import Mailbox as Mailbox
from actors.kit.mailbox import Reply as Reply
from actors.kit.outbox import Mark as Mark
from actors.kit.outbox import Outbox as Outbox
from actors.kit.want import Conditions as Conditions
from actors.kit.want import Degraded as Degraded
from actors.kit.want import Pauses as Pauses
from actors.kit.want import first_of as first_of
from actors.kit.want import is_want as is_want
from actors.kit.want import persist as persist
from actors.kit.want import reason_of as reason_of
