#!/usr/bin/env bash
# An environment for the peers: puncc needs numpy 1, and torchcp's dependency torchsort, which one training loss alone
# uses, does not build everywhere, so torchcp is installed without it, together with an empty torchsort.
set -euo pipefail
python="${1:-python3}"
folder="${2:-.venv-peers}"
"$python" -m venv "$folder"
requirements/torch.sh "$folder/bin/python" requirements/peers.txt
site="$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "soft_rank = soft_sort = None" > "$site/torchsort.py"
