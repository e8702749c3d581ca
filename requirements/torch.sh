#!/usr/bin/env bash
# torch.sh PYTHON FILE: install a file of pins that contains PyTorch. First install PyTorch without CUDA, if pip finds it;
# afterwards the libraries of CUDA, if PyTorch is built with it.
set -euo pipefail
pinned=("$1" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes)
"${pinned[@]}" -r requirements/cpu.txt 2>/dev/null || echo "pip finds no PyTorch without CUDA, and installs the one with it"
"${pinned[@]}" -r "$2"
"$1" -c "import torch" 2>/dev/null || "${pinned[@]}" -r requirements/cuda.txt
