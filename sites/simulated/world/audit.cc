#include "audit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <sotto/sites/faults/lies.h>

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
    : plan_(plan), dimension_(dimension), has_mass_(plan.exchange == MixingKind::push_sum) {}

void Audit::begin_event(SimTime time, Rank site, const char* during) {
  time_ = time;
  site_ = site;
  during_ = during;
}

void Audit::fail(std::string what) {
  if (!violation_) {
    violation_ = {.time = time_, .site = site_, .during = during_, .what = std::move(what)};
  }
}

Audit::Seen Audit::look(Process& process) {
  Seen before = {process.state, std::move(process.peers)};
  process.state = process.node->state();
  process.peers = process.node->peers();
  return before;
}

/// What only ever grows, and what a mint is.
void Audit::check_identity(const Process& process, const Seen& before) {
  const SiteState& now = process.state;
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
void Audit::check_acquaintances(Process& process, const Seen& before) {
  constexpr std::size_t kRemembered = 8;
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const auto known = before.peers[i].incarnation;
    const auto heard = process.peers[i].incarnation;
    if (known == heard) {
      continue;
    }
    std::deque<Incarnation>& past = account_of(process, i).past;
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
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const PeerState& peer = process.peers[i];
    most_pending_ = std::max(most_pending_, peer.pending);
    if (peer.pending > plan_.window + 1) {
      fail(fmt::format("{} parcels of site {} wait to be applied, and the window is {}",
                       peer.pending, process.listed[i], plan_.window));
    }
    const Sequence settled =
        std::max(peer.receipts,
                 process.account.peers[static_cast<std::size_t>(process.listed[i])].written_off);
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

void Audit::expect_mass(const Process& process, double mass, const char* after) {
  if (has_mass_ && !(std::abs(process.state.mass - mass) <= kTolerance)) {
    fail(fmt::format("holds a mass of {:.12g} after {}, and it should be {:.12g}",
                     process.state.mass, after, mass));
  }
}

void Audit::balance(const Process& process) {
  if (!has_mass_) {
    return;
  }
  if (!std::isfinite(process.state.mass) || process.state.mass < 0) {
    fail(fmt::format("holds a mass of {}", process.state.mass));
  }
  const double error = std::abs(process.account.imbalance());
  worst_error_ = std::max(worst_error_, error);
  if (!(error <= kTolerance + kRounding * process.account.turnover())) {
    fail(fmt::format("its account is out of balance by {:.3g}", process.account.imbalance()));
  }
}

/// Streams end when either incarnation does, as this site sees it.
void Audit::close_streams(Process& process, const Seen& before) {
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const bool renewed = process.state.incarnation != before.state.incarnation ||
                         process.peers[i].incarnation != before.peers[i].incarnation ||
                         process.peers[i].sent < before.peers[i].sent;
    if (renewed) {
      process.account.close_stream(static_cast<std::size_t>(process.listed[i]));
      process.account.peers[static_cast<std::size_t>(process.listed[i])].written_off = 0;
      process.arrivals[static_cast<std::size_t>(process.listed[i])].clear();
    }
  }
}

void Audit::began(Process& process) {
  static_cast<void>(look(process));
  process.account = process.disk->account();
  if (process.disk->commits.empty()) {
    const auto fresh = incarnations_.insert(process.state.incarnation);
    if (!fresh.second) {
      fail("begins without state under an incarnation that was there before");
    }
    process.account.incarnation = process.state.incarnation;
    process.account.mass = process.state.mass;
    process.account.minted += process.state.minted;
    expect_mass(process, process.state.minted, "its beginning");
  } else {
    check_loaded(process);
    const Commit& commit = process.disk->commits.back();
    write_off(process, commit.listed, commit.peers);
  }
  balance(process);
}

/// Writes off what peers that have left the list have not got, and never will.
void Audit::write_off(Process& process, const std::vector<Rank>& before,
                      const std::vector<PeerState>& peers) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto rank = static_cast<std::size_t>(before[i]);
    if (std::find(process.listed.begin(), process.listed.end(), before[i]) ==
        process.listed.end()) {
      process.account.close_stream(rank);
      process.account.peers[rank].written_off = peers[i].sent;
      process.arrivals[rank].clear();
    }
  }
}

/// A state is read as it was written; but that a round which was offered has ended.
void Audit::check_loaded(const Process& process) {
  const Commit& commit = process.disk->commits.back();
  const SiteState& was = commit.state;
  const SiteState& is = process.state;
  if (is.incarnation != was.incarnation || is.round < was.round || is.round > was.round + 1 ||
      is.mass != was.mass || is.minted != was.minted || is.raised != was.raised ||
      is.lowered != was.lowered) {
    fail("loads another state than it wrote");
  }
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const auto place = std::find(commit.listed.begin(), commit.listed.end(), process.listed[i]);
    if (place == commit.listed.end()) {
      continue;
    }
    const PeerState& peer = commit.peers[static_cast<std::size_t>(place - commit.listed.begin())];
    const PeerState& now = process.peers[i];
    if (now.sent != peer.sent || now.applied != peer.applied || now.given != peer.given ||
        now.taken != peer.taken) {
      fail(fmt::format("loads other streams with site {} than it wrote", process.listed[i]));
    }
  }
}

/// What a new incarnation, of this site or of a peer, means for the accounts.
void Audit::renew(Process& process, const Seen& before) {
  close_streams(process, before);
  if (process.state.incarnation == before.state.incarnation) {
    return;
  }
  ++resets_;
  process.account.given_up += process.account.mass;
  process.account.mass = 0;
  process.account.incarnation = process.state.incarnation;
}

/// A parcel that was handed over is kept, or was of no use.
void Audit::take_handed(Process& process, const Seen& before) {
  if (!process.handed) {
    return;
  }
  const Handed handed = *std::exchange(process.handed, std::nullopt);
  const auto found = std::find(process.listed.begin(), process.listed.end(), handed.from);
  const auto place = static_cast<std::size_t>(found - process.listed.begin());
  if (process.peers[place].pending <= before.peers[place].pending) {
    return;
  }
  process.arrivals[static_cast<std::size_t>(handed.from)][handed.sequence] = handed.arrival;
  const PeerState& known = process.peers[place];
  if (handed.incarnation != known.incarnation || handed.life < known.life) {
    fail(fmt::format("takes a parcel of a process of site {} that was replaced", handed.from));
  }
}

/// What a peer has written off goes, also where it has come.
void Audit::drop_arrivals(Process& process, const Seen& before) {
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const auto rank = static_cast<std::size_t>(process.listed[i]);
    if (process.peers[i].pending < before.peers[i].pending) {
      auto& arrivals = process.arrivals[rank];
      arrivals.erase(arrivals.begin(), arrivals.lower_bound(process.resumes[rank]));
    }
  }
}

void Audit::heard(Process& process) {
  const Seen before = look(process);
  check_identity(process, before);
  check_acquaintances(process, before);
  renew(process, before);
  take_handed(process, before);
  drop_arrivals(process, before);
  const double minted = process.state.minted - before.state.minted;
  if (has_mass_ && minted != 0 && (minted != 1 || process.account.mass != 0)) {
    fail(fmt::format("mints {} on top of {}", minted, process.account.mass));
  }
  expect_mass(process, process.account.mass + minted, "an event that moves none");
  process.account.mass = process.state.mass;
  process.account.minted += minted;
  balance(process);
  check_bounds(process);
}

void Audit::stepped(Process& process) {
  const Seen before = look(process);
  check_identity(process, before);
  expect_mass(process, before.state.mass, "a step");
}

void Audit::offered(Process& process) {
  const Seen before = look(process);
  check_identity(process, before);
  double made = 0;
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const PeerState& now = process.peers[i];
    const Sequence count = now.sent - before.peers[i].sent;
    if (count == 0) {
      continue;
    }
    PeerAccount& account = account_of(process, i);
    const double mass = now.given - before.peers[i].given;
    if (count > 1 || (has_mass_ && !(mass > 0))) {
      fail(fmt::format("makes {} parcels with a mass of {} for site {}", count, mass,
                       process.listed[i]));
    }
    if (account.stream == 0) {
      account.stream = ++last_stream_;
      account.to = now.incarnation;
    }
    made += mass;
    account.made += mass;
    account.recent.push_back({process.state.incarnation, now.sent, account.stream, mass});
    while (account.recent.size() > 4 * plan_.window + 4) {
      account.recent.pop_front();
    }
  }
  expect_mass(process, process.account.mass - made, "making parcels");
  process.account.mass = process.state.mass;
  balance(process);
  check_bounds(process);
}

void Audit::collected(Process& process) {
  const Seen before = look(process);
  check_identity(process, before);
  renew(process, before);
  double taken = 0;
  for (std::size_t i = 0; i < process.peers.size(); ++i) {
    const auto rank = static_cast<std::size_t>(process.listed[i]);
    PeerAccount& account = process.account.peers[rank];
    double of_peer = 0;
    for (Sequence s = before.peers[i].applied + 1; s <= process.peers[i].applied; ++s) {
      const auto found = process.arrivals[rank].find(s);
      if (found == process.arrivals[rank].end() && s < process.resumes[rank]) {
        continue;
      }
      if (found == process.arrivals[rank].end()) {
        fail(fmt::format("applies parcel {} of site {}, which never came", s, rank));
        return;
      }
      const Arrival& arrival = found->second;
      of_peer += arrival.mass;
      if (account.heard != arrival.stream) {
        account.applied_before += account.applied;
        account.applied = 0;
        account.heard = arrival.stream;
      }
      account.applied += arrival.mass;
      process.arrivals[rank].erase(found);
    }
    taken += of_peer;
    if (has_mass_ && of_peer != 0 &&
        !(std::abs(process.peers[i].taken - before.peers[i].taken - of_peer) <= kTolerance)) {
      fail(fmt::format("takes {} of mass from site {} that gave {}",
                       process.peers[i].taken - before.peers[i].taken, rank, of_peer));
    }
  }
  const double returned = returned_since(process, before);
  expect_mass(process, process.account.mass + taken + returned, "taking parcels in");
  process.account.mass = process.state.mass;
  process.account.returned += returned;
  balance(process);
  check_bounds(process);
}

/// What a site made or took away of mass. It may, as its model stays; but it counts it, and ends
/// within bounds.
double Audit::returned_since(const Process& process, const Seen& before) {
  const SiteState& now = process.state;
  const double raised = now.raised - before.state.raised;
  const double lowered = now.lowered - before.state.lowered;
  const MassRule rule;
  if (has_mass_ && !(raised >= 0 && lowered >= 0)) {
    fail(fmt::format("has raised its mass by {} and lowered it by {}", raised, lowered));
  }
  if (has_mass_ && now.mass > 0 &&
      !(now.mass >= rule.least - kTolerance && now.mass <= rule.most + kTolerance)) {
    fail(fmt::format("ends a round with a mass of {}, outside {} … {}", now.mass, rule.least,
                     rule.most));
  }
  return raised - lowered;
}

void Audit::relisted(Process& process, const std::vector<Rank>& before) {
  write_off(process, before, process.peers);
  static_cast<void>(look(process));
  expect_mass(process, process.account.mass, "a change of its list");
  balance(process);
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
  const auto place = std::find(commit.listed.begin(), commit.listed.end(), to);
  if (place == commit.listed.end()) {
    return;
  }
  const PeerState& durable = commit.peers[static_cast<std::size_t>(place - commit.listed.begin())];
  const bool same = commit.state.incarnation == process.state.incarnation;
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
  const std::deque<MadeParcel>& made = from.account.peers[static_cast<std::size_t>(to.site)].recent;
  const auto found = std::find_if(made.rbegin(), made.rend(), [&](const MadeParcel& one) {
    return one.from == parcel->incarnation && one.sequence == parcel->sequence;
  });
  if (found == made.rend()) {
    return std::nullopt;
  }
  return Handed{
      .from = from.site,
      .incarnation = parcel->incarnation,
      .life = from.life,
      .sequence = parcel->sequence,
      .arrival = {found->stream, plan_.lie_of(from.site) && has_mass_ ? mass_in(message, dimension_)
                                                                      : found->mass}};
}

void Audit::delivers(Process& to, const Incoming& incoming) const {
  to.handed = incoming.parcel;
  const auto parsed = parse(incoming.news.message, dimension_);
  const auto* hello = parsed.ok() ? std::get_if<Hello>(&parsed.value()) : nullptr;
  if (hello != nullptr) {
    to.resumes[static_cast<std::size_t>(incoming.news.peer)] = hello->oldest;
  }
}

void Audit::compare_copies(const Process& followed, const Process& follower) {
  const auto found = std::find(follower.listed.begin(), follower.listed.end(), followed.site);
  const auto place = static_cast<std::size_t>(found - follower.listed.begin());
  if (found == follower.listed.end() || !follower.peers[place].up ||
      follower.peers[place].version == 0 ||
      follower.peers[place].version != followed.state.version ||
      follower.peers[place].incarnation != followed.state.incarnation ||
      plan_.lie_of(followed.site)) {
    return;
  }
  const auto own = std::as_bytes(followed.node->public_copy(std::nullopt));
  const auto copy = std::as_bytes(follower.node->public_copy(place));
  if (!std::equal(own.begin(), own.end(), copy.begin(), copy.end())) {
    fail(fmt::format("follows another copy of site {} than that has, of version {}", followed.site,
                     followed.state.version));
  }
}

void Audit::check_total(std::span<const MassAccount* const> accounts, bool whole) {
  if (!has_mass_) {
    return;
  }
  minted_ = 0;
  for (const MassAccount* account : accounts) {
    minted_ += account->minted;
  }
  lost_ = lost_mass(accounts);
  if (whole) {
    worst_error_ = std::max(worst_error_, std::abs(lost_));
    double turnover = 0;
    for (const MassAccount* account : accounts) {
      turnover += account->turnover();
    }
    if (!(std::abs(lost_) <= kTolerance + kRounding * turnover)) {
      fail(fmt::format("{:.12g} of the mass is gone although every state is there", lost_));
    }
  }
}

void Audit::report(SimulatedSitesReport& report) const {
  report.violation = violation_;
  report.resets = resets_;
  report.worst_mass_error = worst_error_;
  report.minted = minted_;
  report.lost = lost_;
  report.most_pending = most_pending_;
}

}  // namespace sotto::sites
