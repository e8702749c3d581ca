"""Object stores on loopback: moto's S3, which checks signatures and permissions, and Azurite, which checks signatures.

They run in a separate environment (`nox -s stores`): the first as `python store_servers.py`, the second if npm has
installed it.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BUCKET = "clinic"
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Public: every Azurite has it."""
RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::*", "arn:aws:s3:::*/*"]}],
}


def serve() -> None:
    """Start S3, print its address and keys, and stop when standard input closes."""
    import boto3
    import requests
    from moto.server import ThreadedMotoServer

    amazon = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    amazon.start()
    host, port = amazon.get_host_and_port()
    url = f"http://{host}:{port}"
    known = {"aws_access_key_id": "root", "aws_secret_access_key": "root", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **known).create_bucket(Bucket=BUCKET)
    people = boto3.client("iam", endpoint_url=url, **known)
    keys = {}
    for name in ("owner", "other"):
        people.create_user(UserName=name)
        made = people.create_access_key(UserName=name)["AccessKey"]
        keys[name] = [made["AccessKeyId"], made["SecretAccessKey"]]
    people.put_user_policy(UserName="owner", PolicyName="all", PolicyDocument=json.dumps(RIGHTS))
    requests.post(f"{url}/moto-api/reset-auth", data="0", timeout=10)  # from now on every request is checked
    print(json.dumps({"s3": url, **keys}), flush=True)
    sys.stdin.read()
    os._exit(0)


@contextmanager
def started(python: Path, log: Path) -> Iterator[dict[str, Any]]:
    """The output of the process, while it runs."""
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(python), __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True
        )
    try:
        said = process.stdout.readline()
        if not said:
            raise RuntimeError(f"no object store answers:\n{log.read_text()[-2000:]}")
        with azurite(python.parent.parent / "node_modules" / ".bin" / "azurite-blob", log) as address:
            yield json.loads(said) | ({} if address is None else {"az": address})
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


@contextmanager
def azurite(program: Path, log: Path) -> Iterator[str | None]:
    """The endpoint of Azure's emulator; None if it is not installed."""
    if not program.exists():
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    from pyarrow.fs import AzureFileSystem

    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command = [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with log.open("a") as stream:
        process = subprocess.Popen(command, cwd=log.parent, stdout=stream, stderr=stream)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        where = {f"{kind}_storage_authority": f"127.0.0.1:{port}" for kind in ("blob", "dfs")}
        where |= {f"{kind}_storage_scheme": "http" for kind in ("blob", "dfs")}
        AzureFileSystem(AZURITE_ACCOUNT, account_key=AZURITE_KEY, **where).create_dir(BUCKET)
        yield f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    serve()
