#!/usr/bin/env bash
# torch.sh PYTHON FILE: installs a file of pins that names PyTorch. Before it goes PyTorch without CUDA, where pip finds that;
# after it the libraries of CUDA, where PyTorch is built with it.
set -euo pipefail
pinned=("$1" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes)
"${pinned[@]}" -r requirements/cpu.txt 2>/dev/null || echo "pip finds no PyTorch without CUDA, and takes the one with it"
"${pinned[@]}" -r "$2"
"$1" -c "import torch" 2>/dev/null || "${pinned[@]}" -r requirements/cuda.txt
