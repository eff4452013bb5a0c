#include <sotto/sites/core/site.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/secure_sum.h>
#include <sotto/sites/core/site_admission.h>

namespace sotto::sites {
namespace {

/// The key of a round's rounding: of its own for each incarnation.
RandomKey rounding_key(std::uint64_t seed, Incarnation incarnation, Round round) {
  return {.seed = seed + (incarnation >> 31),
          .rank = static_cast<Rank>(incarnation & 0x7FFFFFFF),
          .round = round,
          .purpose = Purpose::quantize};
}

/// Blames the fewest peers of which each moved the model nine times as far as all that come after
/// it together, nine tenths of what is left; where there are no others, one alone. `suspects`
/// begins with the farthest, and `step` is the longest step of the site. What goes wrong may be the
/// site's own learning rate, and a liar that moves the model by next to nothing must not make
/// others look far: a peer is blamed only if its parcels moved the model farther than steps do, and
/// one alone only if the first step after them went wrong, `at_once`.
void blame(std::span<Suspect> suspects, double step, bool at_once) {
  constexpr double kTimesTheRest = 9;
  // An honest neighbour begins beside this site and steps as it does.
  constexpr double kStepsAway = 4;
  double others = 0;
  for (const Suspect& suspect : suspects) {
    others += suspect.moved;
  }
  for (std::size_t k = 0; k < suspects.size(); ++k) {
    others = k + 1 == suspects.size() ? 0 : others - suspects[k].moved;
    if (suspects[k].moved >= kTimesTheRest * others && (others > 0 || k == 0)) {
      const bool far = suspects[k].moved > kStepsAway * step;
      if (far && (others > 0 || at_once)) {
        for (Suspect& suspect : suspects.first(k + 1)) {
          suspect.blamed = true;
        }
      }
      return;
    }
  }
}

}  // namespace

Site::Site(SiteSetup setup)
    : mixing_(admit(setup)),
      setup_(std::move(setup)),
      incarnation_(setup_.incarnation),
      planned_(setup_.communication_interval),
      beginning_(setup_.rounds) {
  if (setup_.outer_step_rule && !setup_.observer) {
    outer_.emplace(*setup_.outer_step_rule, setup_.layout, setup_.parameters.size(), *setup_.ops);
  }
  update_peers(setup_.peers);
}

// What happens to it.

void Site::peer_up(std::size_t peer) {
  Neighbour& from = neighbour(peer);
  check(!from.connected(), "a channel opens once");
  if (!alive_) {
    return;
  }
  const bool wants = phase_ == Phase::waiting && !has_left();
  outbox_.send(peer, encode(from.greet({.agreement = setup_.agreement,
                                        .incarnation = incarnation_,
                                        .life = setup_.life,
                                        .has_model = trained_,
                                        .wants_model = wants,
                                        .observer = setup_.observer,
                                        .round = offered_,
                                        .degree = static_cast<std::uint32_t>(degree())})));
}

void Site::peer_down(std::size_t peer) {
  neighbour(peer).hang_up();
  outbox_.drop(peer);
}

void Site::close(std::size_t peer) {
  outbox_.drop(peer);
  if (peers_[peer].connected()) {
    outbox_.hang_up(peer);
    peers_[peer].channel.stage = ChannelStage::refused;
  }
}

void Site::update_peers(const std::vector<SitePeer>& peers) {
  admit_peers(peers, setup_.exchange);
  std::vector<Neighbour> next;
  std::vector<std::size_t> from;
  std::vector<std::size_t> place(peers_.size(), Mixing::kNobody);
  for (const SitePeer& entry : peers) {
    const std::size_t old = place_of(peers_, entry.name);
    const std::size_t once = place_of(former_, entry.name);
    next.emplace_back();
    from.push_back(old < peers_.size() ? old : Mixing::kNobody);
    if (old < peers_.size()) {
      const bool tells = entry.tells && !setup_.observer;
      if (peers_[old].entry.hears != entry.hears || peers_[old].entry.tells != tells) {
        close(old);  // its hello said otherwise
      }
      next.back() = std::move(peers_[old]);
      place[old] = next.size() - 1;
    } else if (once < former_.size()) {
      next.back() = std::move(former_[once]);
      former_.erase(former_.begin() + static_cast<std::ptrdiff_t>(once));
    }
    next.back().entry = entry;
    next.back().entry.tells = entry.tells && !setup_.observer;
  }
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    if (place[k] == Mixing::kNobody) {
      retire(std::move(peers_[k]));
    }
  }
  beginning_.rearrange(place);
  models_.rearrange(place);
  peers_ = std::move(next);
  mixing_->rearrange(from);
  if (SecureSum* sum = mixing_->secure_sum(); sum != nullptr) {
    std::vector<std::string> names;
    for (const SitePeer& entry : peers) {
      names.push_back(entry.name);
    }
    sum->know(names);
  }
  outbox_.rearrange(place, Mixing::kNobody);
}

std::size_t Site::place_of(const std::vector<Neighbour>& peers, std::string_view name) {
  const auto at = std::ranges::find(
      peers, name, [](const Neighbour& peer) -> std::string_view { return peer.entry.name; });
  return static_cast<std::size_t>(at - peers.begin());
}

void Site::retire(Neighbour gone) {
  bequest_.retire(gone);
  written_off_ += gone.leave();
  former_.push_back(std::move(gone));
  if (former_.size() > kMostFormer) {
    former_.erase(former_.begin());
  }
}

// A round.

bool Site::try_begin(bool waited) {
  if (outdated_) {
    give_up();
  }
  if (phase_ != Phase::waiting) {
    return true;
  }
  if (!trained_ && !models_.empty() && (waited || !may_hear_second_model())) {
    take_over_model();
  }
  if (!trained_ && !models_.empty()) {
    return false;
  }
  if (trained_ && !waited && beginning_.doubtful() && !has_second_opinion()) {
    return false;
  }
  bool all_there = true;
  bool begun = false;
  for (const Neighbour& peer : peers_) {
    if (!trained_ && peer.up() && peer.channel.model_due) {
      return false;
    }
    all_there = all_there && (peer.up() || !peer.entry.hears);
    begun = begun || (peer.heard() && peer.known.round > 0);
  }
  if (trained_ || begun || all_there || waited) {
    begin();
  }
  return phase_ != Phase::waiting;
}

bool Site::may_hear_second_model() const {
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    const Neighbour& peer = peers_[k];
    const bool may = peer.up() ? peer.channel.model_due && !models_.full()
                               : !peer.refused.has_value() && !models_.enough();
    if (peer.entry.hears && may && !models_.has(k)) {
      return true;
    }
  }
  return false;
}

void Site::take_over_model() {
  const OfferedModel model = models_.choose(setup_.parameters);
  if (outer_) {
    outer_->begin(setup_.parameters);  // where the site goes back to, should this one be spoilt
  }
  keep_model();
  Influence& influence = peers_[model.peer].influence;
  influence.moved = distance_between(model.values, setup_.parameters);
  influenced_ = influence.moved > 0;
  setup_.ops->copy(model.values, setup_.parameters);
  trained_ = true;
  beginning_.take_over(model.peer, model.round);
}

void Site::begin() {
  mixing_->begin();
  if (outer_) {
    outer_->begin(setup_.parameters);
  }
  minted_ += 1;
  if (trained_) {
    round_ = settled_round();
  }
  for (Neighbour& peer : peers_) {
    peer.lead.meet(behind(peer), setup_.window);
  }
  phase_ = Phase::training;
}

void Site::give_up() {
  past_.add({incarnation_, setup_.life});
  incarnation_ = setup_.incarnation;
  ++resets_;
  mixing_->give_up();
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    mixing_->forget(k);
    peers_[k].begin_anew();
    close(k);
    // What still comes on its channel is about the incarnation that is gone.
    peers_[k].hang_up();
    peers_[k].agreed = peers_[k].claims_newer = false;
  }
  for (Neighbour& peer : former_) {
    peer.begin_anew();
  }
  offered_ = 0;
  trained_ = false;
  beginning_.give_up();
  models_.clear();
  influenced_ = false;
  loaded_ = outdated_ = false;
  sum_round_.give_up();
  steps_ = 0;
  phase_ = Phase::waiting;
}

Status Site::step(std::span<const float> gradient) {
  check(phase_ == Phase::training, "a site steps between ready and offer");
  check(gradient.size() == setup_.parameters.size(), "a gradient has the model's dimension");
  const Round number = round_ * setup_.communication_interval + steps_;
  if (Status status = mixing_->step(number, gradient); !status.ok()) {
    return here(status);
  }
  ++steps_;
  return {};
}

void Site::plan_steps(Round steps) {
  check(steps >= 1 && steps <= setup_.communication_interval, "a round has 1 … H steps");
  planned_ = steps;
}

Status Site::offer() {
  check(phase_ == Phase::training, "a site offers once a round");
  if (outdated_) {
    phase_ = Phase::offered;
    return {};
  }
  if (Status status = weigh_steps(); !status.ok()) {
    return here(status);
  }
  std::vector<Addressee> to;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    Neighbour& peer = peers_[k];
    const bool room = peer.out.items().size() < setup_.window;
    peer.full_rounds += room || !peer.told() || peer.comes_to_model() ? 0U : 1U;
    if (peer.told() && room && !peer.draining) {
      to.push_back({.peer = k, .whole = peer.out.behind(), .observer = peer.observer});
    }
  }
  if (Status status = mixing_->offer(rounding_key(setup_.seed, incarnation_, round_), tells(), to);
      !status.ok()) {
    return here(status);
  }
  phase_ = Phase::offered;
  trained_ = true;
  offered_ = round_ + 1;
  steps_ = 0;
  post(to);  // before receipts, which say that the round's parcel, if there was one, has gone
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    peers_[k].in.make_durable();
    Neighbour& peer = peers_[k];
    peer.channel.unheard += 1;
    const bool waits = peer.heard() && peer.punctuality.waited_for() && late(peer);
    if (peer.up() && (waits || peer.needs_receipt())) {
      confirm(k);
    }
  }
  return {};
}

void Site::confirm(std::size_t peer) {
  Neighbour& to = peers_[peer];
  to.channel.said = offered_;
  to.channel.confirmed = to.in.durable();
  outbox_.send(peer, encode(Receipt{.incarnation = to.known.incarnation,
                                    .applied = to.in.durable(),
                                    .round = offered_,
                                    .own_steps = planned_,
                                    .wants_whole = mixing_->wants_whole(peer)}));
}

Status Site::weigh_steps() {
  if (steps_ == 0 || setup_.step_weighting == StepWeighting::work) {
    return {};
  }
  double sum = static_cast<double>(planned_);
  double sites = 1;
  for (const Neighbour& peer : peers_) {
    if (peer.heard() && peer.channel.own_steps > 0) {
      sum += static_cast<double>(peer.channel.own_steps);
      sites += 1;
    }
  }
  const double factor = sum / sites / static_cast<double>(planned_);
  return factor == 1 ? Status() : mixing_->stretch(static_cast<float>(factor));
}

void Site::post(std::span<const Addressee> to) {
  std::vector<bool> reached(peers_.size());
  bool any = false;
  for (const Addressee& addressee : to) {
    if (addressee.payload == nullptr) {
      continue;
    }
    any = reached[addressee.peer] = true;
    peers_[addressee.peer].given = true;
    peers_[addressee.peer].drawn += addressee.mass;
    const Sequence sequence = peers_[addressee.peer].out.push(
        {.round = offered_, .mass = addressee.mass, .payload = addressee.payload}, addressee.whole);
    outbox_.send(
        addressee.peer,
        encode(Parcel{
            .incarnation = incarnation_, .sequence = sequence, .round = offered_, .payload = {}}),
        addressee.payload);
  }
  for (std::size_t k = 0; any && k < peers_.size(); ++k) {
    if (!reached[k]) {
      peers_[k].out.fall_behind();
    }
  }
}

std::vector<std::size_t> Site::awaited() const {
  if (sum_round_.asked()) {
    return SumRound::awaited(peers_, mixing_->secure_sum()->owed());
  }
  std::vector<std::size_t> awaited;
  const SumHope hope = phase_ == Phase::offered ? hope_of_sum() : SumHope::enough;
  if (hope == SumHope::none) {
    return awaited;  // the sooner it is where the others are
  }
  for (std::size_t k = 0; k < peers_.size() && !outdated_; ++k) {
    const Neighbour& peer = peers_[k];
    const bool due = phase_ == Phase::waiting
                         ? peer.up() && peer.channel.model_due
                         : peer.heard() && !peer.channel.joining && outstanding(peer) &&
                               (hope == SumHope::few || peer.punctuality.waited_for());
    if (due && phase_ != Phase::training && !peer.draining) {
      awaited.push_back(k);
    }
  }
  return awaited;
}

Round Site::behind(const Neighbour& peer) const {
  const Round own = std::max(offered_, round_);  // a newcomer has offered none in its first round
  const Round behind = own - std::min(peer.known.round, own);
  return behind - std::min(behind, setup_.slack);
}

bool Site::late(const Neighbour& peer) const {
  // There is no use of what a peer sends later for a sum.
  return behind(peer) > (mixing_->secure_sum() != nullptr ? 0 : peer.lead.allowed());
}

bool Site::outstanding(const Neighbour& peer) const { return late(peer) || peer.in.awaits(); }

Status Site::collect() {
  check(phase_ == Phase::offered, "a site collects what it has offered for");
  if (outdated_) {
    give_up();
    return {};
  }
  if (sum_round_.asked()) {
    sum_round_.end(peers_, mixing_->secure_sum()->owed());
  } else {
    begin_intake();
  }
  std::vector<MixedPeer> mixed;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
    if (peers_[k].heard() && !peers_[k].draining) {
      mixed.push_back({.peer = k,
                       .degree = peers_[k].channel.degree,
                       .barred = peers_[k].credit(round_) != Credit::whole,
                       .part = peers_[k].part});
    }
  }
  if (Status status = mixing_->mix(degree(), mixed); !status.ok()) {
    return here(status);
  }
  end_intake(mixed);
  step_outside();
  settled_mass_ = mixing_->mass();
  round_ = next_round();
  phase_ = Phase::training;
  return {};
}

void Site::step_outside() {
  if (!outer_) {
    return;
  }
  const auto next = outer_->step(round_, setup_.parameters);
  if (!next.empty() && mixing_->move_to(next).ok()) {
    outer_->arrived(setup_.parameters);
  } else {
    outer_->begin(setup_.parameters);  // neighbours must not end this site
  }
}

void Site::keep_model() {
  mixing_->keep();
  if (outer_) {
    outer_->keep();
  }
}

void Site::begin_intake() {
  keep_model();
  // Where sites sum in secret one sends nothing as long as it has not met all others, as this site
  // may not have either.
  const bool can_send =
      mixing_->secure_sum() == nullptr || std::ranges::all_of(peers_, &Neighbour::up);
  for (Neighbour& peer : peers_) {
    peer.influence = {};
    peer.part = 0;
    if (peer.heard() && !peer.channel.joining) {
      peer.punctuality.note(!outstanding(peer), time_);
      peer.lead.note(behind(peer), peer.punctuality.waited_for());
    }
    peer.joining_rounds += peer.channel.joining ? 1U : 0U;
    const bool silent = peer.heard() && peer.in.pending().empty() && !peer.comes_to_model();
    peer.silent_rounds = silent ? peer.silent_rounds + 1 : 0;
    peer.mute_rounds =
        peer.in.pending().empty() ? peer.mute_rounds + (silent && can_send ? 1U : 0U) : 0U;
  }
  time_ = {};
}

void Site::end_intake(std::span<const MixedPeer> mixed) {
  for (const MixedPeer& one : mixed) {
    peers_[one.peer].influence.add(one.influence);
  }
  influenced_ = false;
  for (Neighbour& peer : peers_) {
    influenced_ = influenced_ || peer.influence.moved > 0;
    peer.cut += peer.influence.cut;
    if (peer.influence.absurd) {
      peer.take_blame(offered_);
    }
    if (peer.influence.distance && !peer.ignored(offered_)) {
      peer.far_pulls.note(*peer.influence.distance, peer.influence.cut > 0);
    }
  }
  note_habits();
}

void Site::note_habits() {
  // Between honest sites, too, more mass goes one way than the other, by a few shares of 1 / (1 +
  // k). A peer that took eight shares more than it gave, while this site is at its floor, is named
  // if it gives less than an honest site that is drained itself; and one that gave as much, in
  // shares of half its mass, while this site's mass is high.
  constexpr double kShares = 8;
  constexpr double kHigh = 2;
  constexpr double kForgets = 1.0 / 1024;
  const double much = kShares / static_cast<double>(std::max<std::size_t>(tells(), 1));
  const double mass = mixing_->mass();
  const bool weighs = setup_.exchange == MixingKind::push_sum && !setup_.observer;
  low_rounds_ = weighs && mass <= 2 * setup_.mass.least ? low_rounds_ + 1 : 0;
  high_rounds_ = weighs && mass >= kHigh ? high_rounds_ + 1 : 0;
  const bool has_other_income = std::ranges::any_of(peers_, [](const Neighbour& peer) {
    return peer.entry.hears && !(peer.entry.tells && (!peer.up() || peer.told()));
  });
  for (Neighbour& peer : peers_) {
    if (peer.influence.parcels > 0) {
      peer.note_parcels(peer.influence.excess > 0);
    }
    peer.far_ahead = peer.known.round > offered_ + kMostUnconfirmed;
    peer.drawn -= kForgets * peer.drawn;
    peer.note_giving(std::exchange(peer.given, false), degree());
    // One that may not send here gives nothing by right, and what it took may come back by others.
    const bool owes =
        peer.entry.hears && peer.channel.tells_us ? peer.gives_too_little() : !has_other_income;
    peer.takes = low_rounds_ >= kLongWhile && peer.drawn > much && !peer.observer && owes;
    // Along an edge that is used one way more goes that way, whoever is honest.
    peer.gives =
        high_rounds_ >= kLongWhile && peer.told() && peer.heard() && -peer.drawn > much * mass / 2;
  }
}

std::vector<Suspect> Site::influences() const {
  std::vector<Suspect> found;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    if (peers_[k].influence.moved > 0) {
      found.push_back({.peer = k, .moved = peers_[k].influence.moved});
    }
  }
  std::ranges::stable_sort(found, std::greater(), &Suspect::moved);
  return found;
}

std::optional<std::vector<Suspect>> Site::put_back() {
  check(phase_ == Phase::training, "a model is put back before it is offered");
  if (!influenced_) {
    return std::nullopt;
  }
  std::vector<Suspect> suspects = influences();
  const Status status = mixing_->put_back();
  check(status.ok(), "what was kept can be put back");
  if (outer_) {
    outer_->put_back();
  }
  blame(suspects, mixing_->longest_step(), steps_ == 0);
  for (Suspect& suspect : suspects) {
    Neighbour& peer = peers_[suspect.peer];
    peer.influence = {};
    ++peer.spoiled;
    if (suspect.blamed) {
      peer.take_blame(round_);
      suspect.barred = peer.barred(round_);
    }
  }
  influenced_ = false;
  steps_ = 0;
  return suspects;
}

bool Site::due(const Neighbour& from) const {
  // In step, a peer is at most one round ahead, and what it sent for the next round waits. One that
  // has not waited for us is not waited for.
  const auto& pending = from.in.pending();
  if (mixing_->secure_sum() != nullptr) {
    // A sum is of one round. The parcels of a peer that has run far ahead will never be in one.
    const Round round = pending.front().round;
    return round <= offered_ || round > offered_ + setup_.window;
  }
  const bool ahead = setup_.slack == 0 && pending.front().round == offered_ + 1;
  return !ahead || from.known.round > offered_ + 1;
}

void Site::take_in(std::size_t peer) {
  Neighbour& from = peers_[peer];
  if (from.in.pending().empty()) {
    return;
  }
  const Freshness::Rounds now = {.own = offered_, .theirs = from.in.pending().front().round};
  const double part = from.freshness.part(now);
  while (!from.in.pending().empty() && due(from)) {
    const Round theirs = from.in.pending().front().round;
    const auto taken =
        mixing_->take_in(peer, from.in.pending().front().payload, from.credit(round_));
    if (!taken) {
      from.in.drop_pending();
      // The fault is told by the peer's state.
      (void)offence(peer, taken.status().fault(), taken.status().message());
      return;
    }
    from.influence.add(taken->influence);
    from.drawn -= taken->counted;
    from.part = part;
    from.freshness.note({.own = offered_, .theirs = theirs});
    from.in.apply_first(taken->mass);
  }
}

std::size_t Site::tells() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      peers_, [](const Neighbour& peer) { return peer.entry.tells && !peer.observer; }));
}

std::size_t Site::degree() const { return peers_.size(); }

bool Site::has_second_opinion() const {
  const auto has_begun = [](const Neighbour& peer) { return peer.heard() && peer.known.round > 0; };
  const auto may_say = [](const Neighbour& peer) { return peer.entry.hears && !peer.up(); };
  return std::ranges::count_if(peers_, has_begun) > 1 || std::ranges::none_of(peers_, may_say);
}

Round Site::settled_round() {
  const std::optional<std::size_t> giver = beginning_.giver();
  std::vector<Round> others;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    if (giver != k && peers_[k].heard() && peers_[k].known.round > 0) {
      others.push_back(peers_[k].known.round);
    }
  }
  return beginning_.settle(others, giver ? peers_[*giver].entry.name : "");
}

Status Site::here(const Status& status) const {
  return status.with_context(fmt::format("site {}, round {}", setup_.name, round_));
}

// What it is.

SiteState Site::state() const {
  return {.round = round_,
          .incarnation = incarnation_,
          .life = setup_.life,
          .has_model = trained_,
          .own_steps = planned_,
          .mass = mixing_->mass(),
          .settled_mass = phase_ == Phase::offered ? settled_mass_ : mixing_->mass(),
          .minted = minted_,
          .written_off = written_off_,
          .undelivered = bequest_.undelivered(peers_),
          .raised = mixing_->balance().raised,
          .lowered = mixing_->balance().lowered,
          .drained = low_rounds_ >= kLongWhile,
          .longest_step = mixing_->longest_step(),
          .version = mixing_->version({}),
          .resets = resets_,
          .giver = beginning_.began_by(),
          .round_said_by = beginning_.said_by(),
          .sums = mixing_->sums()};
}

std::vector<PeerState> Site::peers() const {
  std::vector<PeerState> states;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    states.push_back(peers_[k].state());
    states.back().version = mixing_->version(k);
    states.back().barred = peers_[k].barred(round_);
  }
  return states;
}

std::size_t Site::max_message_bytes() const {
  return sites::max_message_bytes(setup_.parameters.size(), mixing_->max_payload());
}

}  // namespace sotto::sites
