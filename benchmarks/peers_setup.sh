#!/usr/bin/env bash
# An environment for the peers: puncc needs numpy 1, and torchcp's dependency torchsort, which one training loss alone
# uses, does not build everywhere, so torchcp goes in without dependencies, and with an empty torchsort beside it.
set -euo pipefail
python="${1:-python3}"
folder="${2:-.venv-peers}"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements/peers.txt
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps torchcp==1.2.1
site="$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "soft_rank = soft_sort = None" > "$site/torchsort.py"
