"""A `Trainer` of Hugging Face.

`transformers` is not installed where this package is tested: this file is compiled there, not run.
"""

from __future__ import annotations

import os

from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from metronome.huggingface import MetronomeCallback

NAME = "distilbert-base-uncased"

callback = MetronomeCallback()
folder = str(callback.job.checkpoint_dir or "checkpoints")
tokenizer = AutoTokenizer.from_pretrained(NAME)
reviews = load_dataset("imdb", split="train").map(lambda row: tokenizer(row["text"], truncation=True))

trainer = Trainer(
    model=AutoModelForSequenceClassification.from_pretrained(NAME),
    args=TrainingArguments(output_dir=folder, max_steps=2000, logging_steps=50, save_steps=500),
    train_dataset=reviews,
    processing_class=tokenizer,
    callbacks=[callback],
)
last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
trainer.train(resume_from_checkpoint=last)
