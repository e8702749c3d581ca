"""A Flower grid without processes: it calls a ClientApp directly."""

import copy
import uuid

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid

try:  # Message() reads a process-wide identity that only Flower's own processes set
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
except ImportError:
    pass


class InProcessGrid(Grid):
    def __init__(self, client_app, configs):
        self.app, self.inbox = client_app, {}
        self.contexts = {
            i: Context(run_id=1, node_id=i, node_config=c, state=RecordDict(), run_config={})
            for i, c in configs.items()
        }

    def set_run(self, run):
        pass

    @property
    def run(self):
        return None

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self):
        return list(self.contexts)

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            number = uuid.uuid4().hex
            message.metadata.__dict__.update(_message_id=number, _run_id=1, _src_node_id=1)
            numbers.append(number)
            try:
                reply = self.app(copy.deepcopy(message), self.contexts[message.metadata.dst_node_id])
            except Exception as error:  # the text that Flower itself would send
                reply = Message(Error(code=2, reason=f"{type(error)}:<'{error}'>"), reply_to=message)
            self.inbox[number] = reply
        return numbers

    def pull_messages(self, message_ids):
        return [self.inbox.pop(i) for i in list(message_ids) if i in self.inbox]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))
