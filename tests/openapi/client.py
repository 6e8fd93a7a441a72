# Uses the client that openapi-python-client made of /openapi.json, and prints what it saw as JSON.
#
# Usage: python client.py URL TOKEN TOOL, with the generated package `toolcrib_client` beside the working directory

import json
import sys

from toolcrib_client import AuthenticatedClient
from toolcrib_client.api.crib import health
from toolcrib_client.api.tools import call_tool, list_tools, show_tool
from toolcrib_client.models import CallBody, CallBodyArguments, ErrorView, OutcomeView

url, token, tool = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)


def call(arguments):
    return call_tool.sync(tool, client=client, body=CallBody(arguments=CallBodyArguments.from_dict(arguments)))


outcome = call({"word": "hello"})
assert isinstance(outcome, OutcomeView), outcome
refused = call({"word": 3})
assert isinstance(refused, ErrorView), refused
print(
    json.dumps(
        {
            "tools": [one.name for one in list_tools.sync(client=client).tools],
            "description": show_tool.sync(tool, client=client).description,
            "version": health.sync(client=client).version,
            "output": outcome.output,
            "refused": refused.error.code,
        }
    )
)
