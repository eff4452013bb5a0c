"""A GPT of ten million parameters on the characters of a text, trained as people train one, in
plain PyTorch: warm-up and cosine, several batches a step, clipping, bfloat16, checkpoints.

    python3 train_gpt_plain.py FILE

train_gpt.py does it on many nodes; `diff train_gpt_plain.py train_gpt.py` shows what that takes.
"""

import torch
from char_gpt import Gpt, factor_at, read_recipe, read_text, test_loss

recipe = read_recipe()
text, tests, alphabet = read_text(recipe.file)
torch.manual_seed(1)
model = Gpt(alphabet, recipe.width, recipe.layers)
optimizer = torch.optim.AdamW(
    model.parameters(), lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.1
)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor_at(recipe, step))
if recipe.resume > 0:
    saved = torch.load(f"{recipe.checkpoints}/{recipe.resume}.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
for step in range(recipe.resume, recipe.steps):
    generator = torch.Generator().manual_seed(step)
    optimizer.zero_grad()
    for _ in range(recipe.accumulate):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=recipe.bfloat16):
            loss = model.loss(text.sample(recipe.batch, generator))
        (loss / recipe.accumulate).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if (step + 1) % recipe.every == 0 or step + 1 == recipe.steps:
        loss = test_loss(model, tests)
        print(f"step {step + 1}: loss {loss:.3f}", flush=True)
        if recipe.checkpoints:
            saved = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
            }
            torch.save(saved, f"{recipe.checkpoints}/{step + 1}.pt")
        if loss <= recipe.until:
            break
