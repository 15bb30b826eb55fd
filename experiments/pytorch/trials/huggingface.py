"""`transformers.Trainer` with `MetronomeCallback`: a small GPT-2 with random parameters learns generated tokens."""

from typing import Any

import torch
import torch.distributed as dist
from metronome.huggingface import MetronomeCallback, last_checkpoint
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import harness

VOCABULARY = 512
TOKENS = 16
BLOCKS = 4


class Sequences(torch.utils.data.Dataset):
    """Each token follows from the one before by a rule, from a random first token on."""

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = [(index * 7919) % VOCABULARY]
        while len(tokens) < TOKENS:
            tokens.append((5 * tokens[-1] + 3) % VOCABULARY)
        return {"input_ids": torch.tensor(tokens), "labels": torch.tensor(tokens)}


class Recorded(TrainerCallback):
    """The loss of every step, averaged over the members."""

    def __init__(self, payload: int) -> None:
        self.record = harness.Record()
        self.payload = payload

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.record.start(state.global_step, self.payload)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if logs and "loss" in logs:
            self.record.iteration(state.global_step - 1, logs["loss"])


def small_model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    size = {"n_embd": 96, "n_layer": BLOCKS, "n_head": 4, "n_positions": TOKENS, "vocab_size": VOCABULARY}
    model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=0, eos_token_id=0))
    forward_s = harness.COMPUTE_S * harness.FORWARD_PART / BLOCKS
    backward_s = harness.COMPUTE_S / BLOCKS - forward_s
    for block in model.transformer.h:
        # A block returns its hidden states alone or as the first of a tuple.
        block.register_forward_hook(lambda _block, _inputs, output: slowed(output, forward_s, backward_s))
    return model


def slowed(output: Any, forward_s: float, backward_s: float) -> Any:
    if isinstance(output, tuple):
        return harness.compute(output[0], forward_s, backward_s), *output[1:]
    return harness.compute(output, forward_s, backward_s)


options = harness.arguments()
torch.set_num_threads(1)
callback = MetronomeCallback()
folder = str(callback.job.checkpoint_dir or "checkpoints")
training = TrainingArguments(
    output_dir=folder,
    max_steps=options.iterations,
    per_device_train_batch_size=4,
    learning_rate=1e-3,
    lr_scheduler_type="constant",
    logging_steps=1,
    save_strategy="no",
    use_cpu=True,
    ddp_backend="gloo",
    ddp_bucket_cap_mb=1,
    report_to=[],
    disable_tqdm=True,
    seed=0,
)
model = small_model()
trainer = Trainer(
    model=model,
    args=training,
    train_dataset=Sequences(),
    callbacks=[callback, Recorded(harness.ring_bytes(harness.gradient_bytes(model)))],
)
trainer.train(resume_from_checkpoint=last_checkpoint(folder))
callback.job.close()
dist.destroy_process_group()
