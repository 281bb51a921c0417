"""What train_gpt exports, in transformers: AutoModelForCausalLM loads it and has the logits of train_gpt's own forward pass. What
transformers saves, with and without the head, in one file and in several, is a beginning of a run with the logits of transformers.

usage: gpt_transformers.py TRAIN_GPT SCRATCH VENV PRODUCTS; makes VENV with torch and transformers, where ZERO_TEST_FULL is set (4 GB).
Exit 77: skipped.
"""
import os
import shutil
import subprocess
import sys

import packages

CONTEXT = 64
TOLERANCE = 1e-4


def logits_of(torch, model, text):
    with open(text, "rb") as file:
        ids = torch.tensor([list(file.read(CONTEXT))])
    model.eval()
    with torch.no_grad():
        return model(ids).logits[0]


def losses_of(torch, logits, text):
    with open(text, "rb") as file:
        targets = torch.tensor(list(file.read(CONTEXT + 1))[1:])
    return torch.nn.functional.cross_entropy(logits, targets).item()


def compare(torch, what, path, theirs, text):
    """Largest difference of a logit, and that of the mean losses."""
    with open(path, "rb") as file:
        ours = torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(CONTEXT, -1)
    if ours.shape != theirs.shape or theirs.std().item() < 0.01:
        sys.exit(f"FAILED {what}: logits of shape {tuple(ours.shape)}, expected {tuple(theirs.shape)} that differ from one another")
    logit = (ours - theirs).abs().max().item()
    loss = abs(losses_of(torch, ours, text) - losses_of(torch, theirs, text))
    print(f"{what}: largest difference of {ours.numel()} logits {logit:.2g}, of the mean loss {loss:.2g}")
    if not (logit <= TOLERANCE and loss <= TOLERANCE):
        sys.exit(f"FAILED {what}: at most {TOLERANCE} each")


def check_exports(torch, transformers, common, scratch, text):
    for number, (ranks, stage, untied) in enumerate([(1, 0, False), (3, 3, False), (2, 2, True)]):
        folder, logits = os.path.join(scratch, f"export-{number}"), os.path.join(scratch, f"logits-{number}")
        subprocess.run([*common, "--steps", "20", "--ranks", str(ranks), "--stage", str(stage), "--export", folder, "--write-logits", logits]
                       + ["--untied-head"] * untied, check=True)
        model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
        wrong = [key for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[key]]
        if wrong or model.config.tie_word_embeddings == untied:
            sys.exit(f"FAILED {folder}: {info}")
        compare(torch, f"exported by {ranks} ranks in stage {stage}{', untied' * untied}", logits, logits_of(torch, model, text), text)


def check_inits(torch, transformers, common, scratch, text):
    torch.manual_seed(7)
    config = transformers.GPT2Config(vocab_size=256, n_positions=128, n_embd=256, n_layer=4, n_head=4, initializer_range=0.1, bos_token_id=None,
                                    eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config)
    folders = {"with its head": model, "without": model.transformer, "in several files": model}
    for what, saved in folders.items():
        folder, logits = os.path.join(scratch, "saved " + what), os.path.join(scratch, "logits " + what)
        saved.save_pretrained(folder, max_shard_size="2MB" if "several" in what else "5GB")
        # A rate of 0 changes no parameter.
        subprocess.run([*common, "--steps", "1", "--lr", "0", "--weight-decay", "0", "--ranks", "3", "--init", folder, "--write-logits", logits],
                       check=True)
        compare(torch, f"begun with files of transformers, {what}", logits, logits_of(torch, model, text), text)
    return len(folders)


def main():
    program, scratch, venv, products = sys.argv[1:]
    if not os.environ.get("ZERO_TEST_FULL"):
        print("skipped: it needs torch and transformers, of 4 GB; tools/test.sh --full runs it")
        sys.exit(77)
    packages.enter(venv, ["torch", "transformers"], ["torch", "transformers"])
    import torch
    import transformers
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    text = os.path.join(scratch, "text")
    with open(text, "w", encoding="ascii") as file:
        file.writelines(f"{number}\n" for number in range(1, 2001))
    common = [program, "--quiet", "--text", text, "--products", products, "--batch", "6", "--context", str(CONTEXT), "--validation-batches", "1"]
    check_exports(torch, transformers, common, scratch, text)
    check_inits(torch, transformers, common, scratch, text)
    print(f"transformers {transformers.__version__} with torch {torch.__version__}: 3 exports and 3 beginnings agree")


main()
