#include <sotto/groups/block_schedule.h>

#include <utility>

#include <sotto/base/check.h>

namespace sotto {
namespace {

int modulo(int a, int p) { return (a % p + p) % p; }

std::vector<Chunk> chunks_of(std::size_t elements, int members) {
  std::vector<Chunk> chunks;
  chunks.reserve(static_cast<std::size_t>(members));
  for (int i = 0; i < members; ++i) {
    chunks.push_back(chunk_of(elements, members, i));
  }
  return chunks;
}

/// A step with all others: block `sent(q)` to the member at q, `taken(q)` from it.
template <typename Sent, typename Taken>
ScheduleStep with_all(BlockTransfer transfer, int members, int position, const Sent& sent,
                      const Taken& taken) {
  ScheduleStep step{.phase = 0, .transfer = transfer, .sends = {}, .receives = {}};
  for (int q = 0; q < members; ++q) {
    if (q != position) {
      step.sends.push_back({q, static_cast<std::size_t>(sent(q))});
      step.receives.push_back({q, static_cast<std::size_t>(taken(q))});
    }
  }
  return step;
}

/// Phases round the ring; in phase k block r − k − `lag` goes on, r being the position.
std::vector<ScheduleStep> round_the_ring(BlockTransfer transfer, int members, int position,
                                         int lag) {
  std::vector<ScheduleStep> steps;
  for (int k = 0; k + 1 < members; ++k) {
    const auto block = [&](int back) {
      return static_cast<std::size_t>(modulo(position - k - lag - back, members));
    };
    steps.push_back({.phase = k,
                     .transfer = transfer,
                     .sends = {{modulo(position + 1, members), block(0)}},
                     .receives = {{modulo(position - 1, members), block(1)}}});
  }
  return steps;
}

}  // namespace

BlockSchedule broadcast_schedule(CollectiveForm form, int members, int position, int root,
                                 std::size_t elements) {
  check(form != CollectiveForm::ring, "a broadcast goes directly or by a tree");
  BlockSchedule schedule{.phases = 0, .blocks = {{.offset = 0, .size = elements}}, .steps = {}};
  // Places relative to the root: in each phase those below `holders` have the vector.
  const int place = modulo(position - root, members);
  for (int holders = 1; holders < members; ++schedule.phases) {
    const int reached = form == CollectiveForm::tree ? 2 * holders : members;
    ScheduleStep step{
        .phase = schedule.phases, .transfer = BlockTransfer::publish, .sends = {}, .receives = {}};
    if (form == CollectiveForm::tree && place < holders && place + holders < members) {
      step.sends.push_back({modulo(position + holders, members), 0});
    }
    for (int q = 0; form == CollectiveForm::direct && place == 0 && q < members; ++q) {
      if (q != position) {
        step.sends.push_back({q, 0});
      }
    }
    if (place >= holders && place < reached) {
      step.receives.push_back(
          {form == CollectiveForm::tree ? modulo(position - holders, members) : root, 0});
    }
    if (!step.sends.empty() || !step.receives.empty()) {
      schedule.steps.push_back(std::move(step));
    }
    holders = reached;
  }
  return schedule;
}

BlockSchedule all_gather_schedule(CollectiveForm form, int members, int position,
                                  std::size_t elements) {
  check(form != CollectiveForm::tree, "an all-gather goes directly or round the ring");
  BlockSchedule schedule{.phases = 0, .blocks = chunks_of(elements, members), .steps = {}};
  if (members > 1 && form == CollectiveForm::direct) {
    schedule.steps = {with_all(
        BlockTransfer::publish, members, position, [&](int) { return position; },
        [](int q) { return q; })};
  } else {
    schedule.steps = round_the_ring(BlockTransfer::publish, members, position, 0);
  }
  schedule.phases = static_cast<int>(schedule.steps.size());
  return schedule;
}

BlockSchedule reduce_schedule(int members, int position, int root, std::size_t elements) {
  BlockSchedule schedule{.phases = 0, .blocks = {{.offset = 0, .size = elements}}, .steps = {}};
  if (members == 1) {
    return schedule;
  }
  ScheduleStep step{.phase = 0, .transfer = BlockTransfer::sum, .sends = {}, .receives = {}};
  for (int q = 0; q < members; ++q) {
    if (q != root && position == root) {
      step.receives.push_back({q, 0});
    }
  }
  if (position != root) {
    step.sends.push_back({root, 0});
  }
  schedule.phases = 1;
  schedule.steps.push_back(std::move(step));
  return schedule;
}

BlockSchedule reduce_scatter_schedule(CollectiveForm form, int members, int position,
                                      std::size_t elements) {
  check(form != CollectiveForm::tree, "a reduction goes directly or round the ring");
  BlockSchedule schedule{.phases = 0, .blocks = chunks_of(elements, members), .steps = {}};
  if (members > 1 && form == CollectiveForm::direct) {
    schedule.steps = {with_all(
        BlockTransfer::sum, members, position, [](int q) { return q; },
        [&](int) { return position; })};
  } else {
    schedule.steps = round_the_ring(BlockTransfer::add, members, position, 1);
  }
  schedule.phases = static_cast<int>(schedule.steps.size());
  return schedule;
}

BlockSchedule all_reduce_schedule(CollectiveForm form, int members, int position,
                                  std::size_t elements) {
  BlockSchedule schedule = reduce_scatter_schedule(form, members, position, elements);
  BlockSchedule gather = all_gather_schedule(form, members, position, elements);
  for (ScheduleStep& step : gather.steps) {
    step.phase += schedule.phases;
    schedule.steps.push_back(std::move(step));
  }
  schedule.phases += gather.phases;
  return schedule;
}

BlockSchedule ring_shift_schedule(int members, int position, int by, std::size_t elements) {
  BlockSchedule schedule{.phases = 0, .blocks = {{.offset = 0, .size = elements}}, .steps = {}};
  const int shift = modulo(by, members);
  if (shift != 0) {
    schedule.phases = 1;
    schedule.steps = {{.phase = 0,
                       .transfer = BlockTransfer::exchange,
                       .sends = {{modulo(position + shift, members), 0}},
                       .receives = {{modulo(position - shift, members), 0}}}};
  }
  return schedule;
}

}  // namespace sotto
