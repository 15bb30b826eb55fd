"""A `Trainer` of Hugging Face that learns to tell good reviews from bad ones.

    pip install transformers[torch] datasets
    torchrun --nproc-per-node 2 examples/huggingface.py           # downloads a model and a data set
    torchrun --nproc-per-node 2 examples/huggingface.py --tiny    # generates both, without network and `datasets`

Members of a job reach each other only. As the command of a job, load from folders of this machine: `--model FOLDER
--data FOLDER`.
"""

from __future__ import annotations

import argparse

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DistilBertConfig, Trainer, TrainingArguments

from metronome.huggingface import MetronomeCallback, last_checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="distilbert-base-uncased", help="a model of the Hub, or its folder")
parser.add_argument("--data", default="stanfordnlp/imdb", help="a data set of the Hub, or a folder of its files")
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--tiny", action="store_true", help="a small random model and generated reviews in place of these")


def downloaded(model: str, data: str):
    """The model, its tokenizer, and reviews as tokens."""
    from datasets import load_dataset

    tokenizer = AutoTokenizer.from_pretrained(model)
    reviews = load_dataset(data, split="train").map(lambda row: tokenizer(row["text"], truncation=True))
    return AutoModelForSequenceClassification.from_pretrained(model), tokenizer, reviews


def generated():
    """A model with random parameters, no tokenizer, and reviews of random tokens: token 1 makes a review a good one."""
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=64, dim=64, hidden_dim=128, n_layers=2, n_heads=2, max_position_embeddings=16)
    tokens = torch.randint(2, 64, (512, 16))
    tokens[::2, 3] = 1
    reviews = [{"input_ids": row, "labels": int(1 in row)} for row in tokens]
    return AutoModelForSequenceClassification.from_config(config), None, reviews


options = parser.parse_args()
model, tokenizer, reviews = generated() if options.tiny else downloaded(options.model, options.data)
callback = MetronomeCallback()
folder = str(callback.job.checkpoint_dir or "checkpoints")
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=folder,
        max_steps=options.steps,
        logging_steps=50,
        save_steps=500,
        use_cpu=not torch.cuda.is_available(),
    ),
    train_dataset=reviews,
    processing_class=tokenizer,
    callbacks=[callback],
)
trainer.train(resume_from_checkpoint=last_checkpoint(folder))
callback.job.close()
