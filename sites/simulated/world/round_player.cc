#include "round_player.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sotto::sites {

RoundPlayer::RoundPlayer(WorldState& state, Liars& liars, ProcessTalk& talk, Reach reach)
    : state_(state), liars_(liars), talk_(talk), reach_(std::move(reach)) {}

void RoundPlayer::start(Process& process) {
  if (process.disk->commits.empty()) {
    write(process);
  } else {
    open_channels(process);
  }
}

void RoundPlayer::open_channels(Process& process) {
  process.reachable = true;
  process.moved = process.waits_since = state_.now();
  state_.wires.begin(process.id, process.site, process.listed);
  await_model(process);
}

void RoundPlayer::await_model(Process& process) {
  process.offered = false;
  enter(process, ProcessPhase::waiting, state_.plan.found_after);
  talk_.drain(process);
  if (process.running() && process.phase == ProcessPhase::waiting) {
    advance(process);
  }
}

void RoundPlayer::enter(Process& process, ProcessPhase phase, SimTime lasting) {
  process.phase = phase;
  process.due = plus(state_.now(), lasting);
  state_.push(WorldEvent::phase_over, process.due, process.id, ++process.version);
}

void RoundPlayer::on_phase_over(Process& process) {
  switch (process.phase) {
    case ProcessPhase::computing:
      offer(process);
      break;
    case ProcessPhase::writing:
      commit(process);
      break;
    case ProcessPhase::waiting:
    case ProcessPhase::collecting:
      advance(process);
      break;
  }
}

void RoundPlayer::advance(Process& process) {
  if (process.phase == ProcessPhase::waiting) {
    try_round(process);
  } else if (process.phase == ProcessPhase::collecting) {
    try_end(process);
  }
}

void RoundPlayer::try_round(Process& process) {
  if (write_renewal(process)) {
    return;
  }
  const bool waited = state_.now() >= plus(process.waits_since, state_.plan.found_after);
  state_.begin_event(process.site, "being asked whether it is ready");
  const bool ready = process.access->try_begin(waited);
  state_.observe(process);
  if (write_renewal(process)) {
    return;
  }
  talk_.flush(process);
  if (ready) {
    begin_round(process);
  } else if (state_.now() >= process.due) {
    enter(process, ProcessPhase::waiting, state_.plan.reconnect);
  }
}

void RoundPlayer::try_end(Process& process) {
  const double waited = to_seconds(state_.now() - process.collects_since);
  process.patience.look(waited, process.node->awaited());
  if (!process.node->complete() && state_.now() < process.due) {
    return;
  }
  process.patience.end(waited);
  note_time(process);
  state_.begin_event(process.site, "asking for a sum");
  if (!process.node->ask_for_sum()) {
    collect(process);
    return;
  }
  state_.audit.collected(process);
  await_peers(process);
  talk_.flush(process);
  advance(process);
}

void RoundPlayer::begin_round(Process& process) {
  process.moved = state_.now();
  if (!process.alive || reach_(process, FaultMoment::any)) {
    return;
  }
  const double share = 0.75 + 0.5 * state_.random.uniform();
  const SimTime takes = from_nanoseconds(static_cast<double>(state_.plan.gradient) * share *
                                         static_cast<double>(state_.plan.interval));
  enter(process, ProcessPhase::computing, plus(takes, liars_.delay_of(process.site)));
}

/// As `sotto node` does: a model that is absurd is put back.
Status RoundPlayer::take_steps(Process& process) {
  const std::vector<float> target = state_.target_of(process.site);
  std::vector<float> gradient(state_.options.dimension);
  for (Round step = 0; step < state_.steps_of(process.site);) {
    const std::span<const float> at = process.node->parameters();
    double loss = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = at[i] - target[i];
      loss += static_cast<double>(gradient[i] * gradient[i]);
    }
    Status status = std::isfinite(loss) ? process.node->step(gradient)
                                        : Status(Fault::non_finite, "its loss is not finite");
    if (status.ok()) {
      ++step;
    } else if (status.fault() == Fault::non_finite && process.node->put_back()) {
      ++state_.report.put_backs;
      step = 0;
    } else {
      return status;
    }
  }
  return {};
}

void RoundPlayer::offer(Process& process) {
  state_.begin_event(process.site, "its steps");
  if (const Status status = take_steps(process); !status.ok() && state_.honest(process.site)) {
    state_.audit.fail(status.message());
  }
  state_.audit.stepped(process);
  state_.begin_event(process.site, "making parcels");
  if (const Status status = process.node->offer(); !status.ok()) {
    state_.audit.fail(status.message());
  }
  state_.audit.offered(process);
  process.offered = true;
  write(process);
}

bool RoundPlayer::write_renewal(Process& process) {
  const bool renewed = process.seen.state.incarnation != process.disk->account().incarnation;
  if (renewed) {
    write(process);
  }
  return renewed;
}

/// Before a round's parcels leave; and before a new incarnation is told to anybody, so that it
/// outlives a crash.
void RoundPlayer::write(Process& process) {
  ByteBuffer bytes;
  process.access->save(bytes);
  process.writing = {.life = process.life,
                     .bytes = std::move(bytes).take(),
                     .account = process.seen.account,
                     .state = process.seen.state,
                     .peers = process.seen.peers,
                     .listed = process.listed};
  state_.report.largest_state =
      std::max(state_.report.largest_state, process.writing->bytes.size());
  if (!reach_(process, FaultMoment::before_commit)) {
    enter(process, ProcessPhase::writing, state_.plan.commit);
  }
}

void RoundPlayer::commit(Process& process) {
  std::deque<Commit>& commits = process.disk->commits;
  state_.note(SimulatedSiteEvent::Kind::committed, process.site, -1,
              fingerprint(process.writing->bytes));
  commits.push_back(std::move(*process.writing));
  process.writing.reset();
  if (commits.size() > Disk::kKept) {
    commits.pop_front();
  }
  if (reach_(process, FaultMoment::before_release)) {
    return;
  }
  if (!process.reachable) {
    open_channels(process);
    return;
  }
  if (!process.offered) {
    await_model(process);
    return;
  }
  await_peers(process);
  talk_.flush(process);
  if (process.alive && process.leaving) {
    state_.end_process(process, true);
    return;
  }
  talk_.drain(process);
  if (process.running() && process.phase == ProcessPhase::collecting) {
    advance(process);
  }
}

void RoundPlayer::note_time(Process& process) const {
  if (!std::exchange(process.timed, true)) {
    process.node->note_time({.lasted = to_seconds(state_.now() - process.waits_since),
                             .waited = to_seconds(state_.now() - process.collects_since)});
  }
}

void RoundPlayer::await_peers(Process& process) {
  process.collects_since = state_.now();
  const auto heard = std::ranges::count_if(
      process.seen.peers, [](const PeerState& peer) { return peer.heard && peer.waited_for; });
  process.patience.begin(0, process.node->awaited(), static_cast<std::size_t>(heard));
  enter(process, ProcessPhase::collecting, from_seconds(process.patience.lasts()));
}

void RoundPlayer::collect(Process& process) {
  state_.begin_event(process.site, "taking parcels in");
  if (const Status status = process.node->collect(); !status.ok()) {
    state_.audit.fail(status.message());
  }
  const Incarnation before = process.seen.state.incarnation;
  state_.audit.collected(process);
  state_.naming.look(state_.now(), process);
  state_.note_renewal(process, before);
  state_.note(SimulatedSiteEvent::Kind::finished, process.site, -1, process.seen.state.round);
  for (const Rank peer : process.listed) {
    if (const Process* other = state_.living(peer)) {
      state_.audit.compare_copies(*other, process);
    }
  }
  process.moved = process.waits_since = state_.now();
  process.timed = false;
  await_model(process);
}

}  // namespace sotto::sites
