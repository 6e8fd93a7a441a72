"""What a machine makes up is never run: every body that names a program gets the fixture's, and a second look, at the
last moment before a request leaves, fails the run if one got past that."""

import json
import os
import re

import requests
import schemathesis

FIXTURE = os.environ["FIXTURE"]
ESCAPED = os.environ["ESCAPED"]
ROUTE = re.compile(r"/custom-tools(/[^/?]*)?/?(\?.*)?$")
STARTS = {"args": [], "workingDir": None, "env": {}}


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if isinstance(body, dict):
        if "command" in body:
            body["command"] = FIXTURE
        for key, harmless in STARTS.items():
            if key in body:
                body[key] = harmless


def is_tame(body):
    if not isinstance(body, dict):
        return True
    tame = body.get("command", FIXTURE) == FIXTURE
    return tame and all(body.get(key, harmless) == harmless for key, harmless in STARTS.items())


send = requests.adapters.HTTPAdapter.send


def guarded(self, request, **kwargs):
    if request.method in ("POST", "PATCH", "PUT") and request.body and ROUTE.search(request.url):
        try:
            body = json.loads(request.body)
        except ValueError:
            body = None
        if not is_tame(body):
            with open(ESCAPED, "a") as file:
                file.write(f"{request.method} {request.url} {request.body!r}\n")
            raise RuntimeError("a request escaped the hook")
    return send(self, request, **kwargs)


requests.adapters.HTTPAdapter.send = guarded


@schemathesis.check
def no_bug_of_ours(context, response, case):
    """A tool that is not there, crashes or takes too long has its own status; 500 is a bug."""
    assert response.status_code != 500, response.text


@schemathesis.hook
def after_call(context, case, response):
    with open(os.environ["SEEN"], "a") as file:
        file.write(f"{case.method} {case.path} {response.status_code}\n")
