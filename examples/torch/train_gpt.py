"""A GPT of ten million parameters on the characters of a text, trained as people train one, on many
nodes: warm-up and cosine, several batches a step, clipping, bfloat16, checkpoints, figures.

    mpirun -np 4 python3 train_gpt.py FILE

train_gpt_plain.py does it alone; `diff train_gpt_plain.py train_gpt.py` shows what it takes.
"""

import torch
from char_gpt import Gpt, factor_at, read_recipe, read_text, test_loss
from sotto.torch import DistributedOptimizer

recipe = read_recipe()
text, tests, alphabet = read_text(recipe.file)
torch.manual_seed(1)
model = Gpt(alphabet, recipe.width, recipe.layers)
optimizer = torch.optim.AdamW(
    model.parameters(), lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.1
)
optimizer = DistributedOptimizer(
    optimizer,
    module=model,
    algorithm=recipe.algorithm,
    compressor=recipe.compressor,
    tensorboard=recipe.tensorboard,
    bind=recipe.bind,
    insecure=recipe.bind != "127.0.0.1",  # docs/security.md has keys
)
rank = optimizer.report()["rank"]
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor_at(recipe, step))
if recipe.resume > 0:
    saved = torch.load(f"{recipe.checkpoints}/{recipe.resume}.node-{rank}.pt")
    optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
for step in range(recipe.resume, recipe.steps):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    optimizer.zero_grad()
    for _ in range(recipe.accumulate):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=recipe.bfloat16):
            loss = model.loss(text.sample(recipe.batch, generator))
        (loss / recipe.accumulate).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if (step + 1) % recipe.every == 0 or step + 1 == recipe.steps:
        with optimizer.averaged():
            loss = test_loss(model, tests)
            if recipe.checkpoints and rank == 0:
                torch.save(model.state_dict(), f"{recipe.checkpoints}/{step + 1}.model.pt")
        optimizer.evaluated(loss=loss)
        if rank == 0:
            print(f"step {step + 1}: loss {loss:.3f}", flush=True)
        if recipe.checkpoints:
            saved = {
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
            }
            torch.save(saved, f"{recipe.checkpoints}/{step + 1}.node-{rank}.pt")
        if loss <= recipe.until:
            break
optimizer.finish()
