#include "audit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <sotto/sites/faults/lies.h>

#include "places.h"

namespace sotto::sites {

namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

Audit::Audit(const FaultPlan& plan, std::size_t dimension)
    : plan_(plan), dimension_(dimension), mass_(plan, violation_) {}

SaidState Audit::look(Process& process) {
  SaidState before = std::move(static_cast<SaidState&>(process.seen));
  process.seen.state = process.node->state();
  process.seen.peers = process.node->peers();
  return before;
}

/// What only ever grows, and what a mint is.
void Audit::check_identity(const Process& process, const SaidState& before) {
  const SiteState& now = process.seen.state;
  if (now.life != process.life) {
    fail(fmt::format("says that its life is {}, and it is {}", now.life, process.life));
  }
  const bool began =
      now.minted != before.state.minted || now.incarnation != before.state.incarnation;
  if (now.round < before.state.round && !began) {
    fail(fmt::format("goes back from round {} to {}", before.state.round, now.round));
  }
  if (now.incarnation != before.state.incarnation) {
    const auto [found, fresh] = incarnations_.insert(now.incarnation);
    if (!fresh) {
      fail(fmt::format("takes the incarnation {:x}, which was there before", now.incarnation));
    }
  }
}

/// Holds that a process which was replaced, as far as this site remembers, is not known again.
void Audit::check_acquaintances(Process& process, const SaidState& before) {
  constexpr std::size_t kRemembered = 8;
  for (std::size_t i = 0; i < process.seen.peers.size(); ++i) {
    const auto known = before.peers[i].incarnation;
    const auto heard = process.seen.peers[i].incarnation;
    if (known == heard) {
      continue;
    }
    std::deque<Incarnation>& past = process.account_with(i).past;
    if (std::find(past.begin(), past.end(), heard) != past.end()) {
      fail(fmt::format("goes back to an incarnation of site {} that was replaced",
                       process.listed[i]));
    }
    if (!incarnations_.contains(heard)) {
      fail(fmt::format("believes in the incarnation {:x}, which nobody has", heard));
    }
    past.push_back(known);
    if (past.size() > kRemembered) {
      past.pop_front();
    }
  }
}

void Audit::check_bounds(const Process& process) {
  for (std::size_t i = 0; i < process.seen.peers.size(); ++i) {
    const PeerState& peer = process.seen.peers[i];
    most_pending_ = std::max(most_pending_, peer.pending);
    if (peer.pending > plan_.window + 1) {
      fail(fmt::format("{} parcels of site {} wait to be applied, and the window is {}",
                       peer.pending, process.listed[i], plan_.window));
    }
    const Sequence settled = std::max(peer.receipts, process.account_with(i).written_off);
    if (peer.sent < peer.receipts || peer.sent - std::min(settled, peer.sent) > plan_.window) {
      fail(fmt::format("of {} parcels to site {} {} have a receipt, and the window is {}",
                       peer.sent, process.listed[i], settled, plan_.window));
    }
    if (peer.offences > 0 && !process.fenced && !plan_.lie_of(process.listed[i]) &&
        !plan_.lie_of(process.site)) {
      fail(fmt::format("accuses site {}, which is honest: {}", process.listed[i], peer.trouble));
    }
  }
}

void Audit::began(Process& process) {
  static_cast<void>(look(process));
  if (!process.disk->commits.empty()) {
    check_loaded(process);
    mass_.went_on(process);
    return;
  }
  if (!incarnations_.insert(process.seen.state.incarnation).second) {
    fail("begins without state under an incarnation that was there before");
  }
  mass_.began_anew(process);
}

/// A state is read as it was written; but that a round which was offered has ended.
void Audit::check_loaded(const Process& process) {
  const Commit& commit = process.disk->commits.back();
  const SiteState& was = commit.state;
  const SiteState& is = process.seen.state;
  if (is.incarnation != was.incarnation || is.round < was.round || is.round > was.round + 1 ||
      is.mass != was.mass || is.minted != was.minted || is.raised != was.raised ||
      is.lowered != was.lowered) {
    fail("loads another state than it wrote");
  }
  for (std::size_t i = 0; i < process.seen.peers.size(); ++i) {
    const auto place = place_of(process.listed[i], commit.listed);
    if (!place) {
      continue;
    }
    const PeerState& peer = commit.peers[*place];
    const PeerState& now = process.seen.peers[i];
    if (now.sent != peer.sent || now.applied != peer.applied || now.given != peer.given ||
        now.taken != peer.taken) {
      fail(fmt::format("loads other streams with site {} than it wrote", process.listed[i]));
    }
  }
}

void Audit::heard(Process& process) {
  const SaidState before = look(process);
  check_identity(process, before);
  check_acquaintances(process, before);
  mass_.heard(process, before);
  check_bounds(process);
}

void Audit::stepped(Process& process) {
  const SaidState before = look(process);
  check_identity(process, before);
  mass_.stepped(process, before);
}

void Audit::offered(Process& process) {
  const SaidState before = look(process);
  check_identity(process, before);
  mass_.offered(process, before);
  check_bounds(process);
}

void Audit::collected(Process& process) {
  const SaidState before = look(process);
  check_identity(process, before);
  if (mass_.collected(process, before)) {
    check_bounds(process);
  }
}

void Audit::relisted(Process& process, const std::vector<Rank>& listed) {
  const SaidState before = look(process);
  mass_.relisted(process, listed, before);
}

void Audit::releases(const Process& process, Rank to, std::span<const std::byte> message) {
  const auto parsed = parse(message, dimension_);
  if (!parsed.ok()) {
    fail(fmt::format("sends site {} what does not parse: {}", to, parsed.status().message()));
    return;
  }
  // What is durable of the streams with that site, unless it was off the list then.
  if (process.disk->commits.empty()) {
    fail("speaks before its first state is durable");
    return;
  }
  const Commit& commit = process.disk->commits.back();
  const auto place = place_of(to, commit.listed);
  if (!place) {
    return;
  }
  const PeerState& durable = commit.peers[*place];
  const bool same = commit.state.incarnation == process.seen.state.incarnation;
  const Sequence sent = same ? durable.sent : 0;
  const Sequence applied = same ? durable.applied : 0;
  std::visit(Overloaded{[&](const Parcel& parcel) {
                          if (parcel.sequence > sent) {
                            fail(fmt::format("sends parcel {} to site {}, and only {} are durable",
                                             parcel.sequence, to, sent));
                          }
                        },
                        [&](const Receipt& receipt) {
                          if (receipt.applied > applied) {
                            fail(
                                fmt::format("gives a receipt for parcel {} of site {}, and its "
                                            "durable state has {}",
                                            receipt.applied, to, applied));
                          }
                        },
                        [&](const Hello& hello) {
                          if (hello.applied > applied) {
                            fail(
                                fmt::format("says to have parcel {} of site {}, and its durable "
                                            "state has {}",
                                            hello.applied, to, applied));
                          }
                        },
                        [](const auto&) {}},
             parsed.value());
}

std::optional<Handed> Audit::recognize(const Process& to, const Process& from,
                                       std::span<const std::byte> message) const {
  const auto parsed = parse(message, dimension_);
  const auto* parcel = parsed.ok() ? std::get_if<Parcel>(&parsed.value()) : nullptr;
  if (parcel == nullptr) {
    return std::nullopt;
  }
  const std::deque<MadeParcel>& made =
      from.seen.account.peers[static_cast<std::size_t>(to.site)].recent;
  const auto found = std::find_if(made.rbegin(), made.rend(), [&](const MadeParcel& one) {
    return one.from == parcel->incarnation && one.sequence == parcel->sequence;
  });
  if (found == made.rend()) {
    return std::nullopt;
  }
  return Handed{.from = from.site,
                .incarnation = parcel->incarnation,
                .life = from.life,
                .sequence = parcel->sequence,
                .arrival = {found->stream, plan_.lie_of(from.site) && mass_.has_mass()
                                               ? mass_in(message, dimension_)
                                               : found->mass}};
}

void Audit::delivers(Process& to, const Incoming& incoming) const {
  to.seen.handed = incoming.parcel;
  const auto parsed = parse(incoming.news.message, dimension_);
  const auto* hello = parsed.ok() ? std::get_if<Hello>(&parsed.value()) : nullptr;
  if (hello != nullptr) {
    to.seen.resumes[static_cast<std::size_t>(incoming.news.peer)] = hello->oldest;
  }
}

void Audit::compare_copies(const Process& followed, const Process& follower) {
  const auto place = place_of(followed.site, follower.listed);
  if (!place || plan_.lie_of(followed.site)) {
    return;
  }
  const PeerState& known = follower.seen.peers[*place];
  const SiteState& now = followed.seen.state;
  if (!known.up || known.version == 0 || known.version != now.version ||
      known.incarnation != now.incarnation) {
    return;
  }
  const auto own = std::as_bytes(followed.node->public_copy(std::nullopt));
  const auto copy = std::as_bytes(follower.node->public_copy(*place));
  if (!std::equal(own.begin(), own.end(), copy.begin(), copy.end())) {
    fail(fmt::format("follows another copy of site {} than that has, of version {}", followed.site,
                     now.version));
  }
}

void Audit::report(SimulatedSitesReport& report) const {
  report.violation = violation_.found();
  report.most_pending = most_pending_;
  mass_.report(report);
}

}  // namespace sotto::sites
