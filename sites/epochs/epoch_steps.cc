#include <sotto/sites/epochs/epoch_steps.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/kernels/ops.h>

namespace sotto::sites {

EpochSteps::EpochSteps(const EpochSetup& setup, std::unique_ptr<Compressor> compressor,
                       const EpochMembership& place, EpochPost& post, const EpochModel& model)
    : setup_(setup),
      place_(place),
      post_(post),
      model_(model),
      reducer_(setup.parameters.size(), std::move(compressor), setup.seed),
      log_(setup.join_memory) {}

bool EpochSteps::is_moderate(std::span<const float> finite) {
  const MinMax range = host_ops().min_max(finite);
  return range.min >= -kLargest && range.max <= kLargest;
}

EpochDigest EpochSteps::digest(const StepMean& mean) const {
  const StepSettings settings = step_settings_of(setup_, mean.step - 1);
  return digest_of(mean, settings.learning_rate, settings.further);
}

// -- what others say ------------------------------------------------------------------------------

PartMessage EpochSteps::made_part(Round step, const MeanPart& part) const {
  return {.standing = PartMessage::Standing::made,
          .step = step,
          .digest = {},
          .parts = static_cast<std::uint16_t>(place_.members.size()),
          .part = own(),
          .who = part.who,
          .encoding = part.encoding};
}

void EpochSteps::hear(const EpochNode& from, const ChunkMessage& chunk, EpochTime now) {
  if (chunk.chunk != place_.index || !is_near(chunk.step)) {
    return;
  }
  StepWork& work = works_[chunk.step];
  if (work.made()) {  // the sender lacks it
    post_.send(from, made_part(chunk.step, *work.made()));
  } else if (reducer_.decodes(chunk.encoding, place_.index, place_.members.size())) {
    work.add_chunk(place_.index_of(from), chunk.encoding);
    work.chunk_came(place_.members.size(), now);
  }
}

void EpochSteps::hear(const EpochNode& from, const PartMessage& part) {
  const std::size_t members = place_.members.size();
  if (is_near(part.step) && part.parts == members && place_.members[part.part] == from &&
      reducer_.decodes(part.encoding, part.part, members)) {
    works_[part.step].add_part(part.part, {part.who, part.encoding});
  }
}

void EpochSteps::hear(const EpochNode& from, const HaveMessage& have, EpochTime now) {
  equality_.note(place_.index_of(from), have.model);
  if (is_near(have.step)) {
    works_[have.step].note_have(place_.index_of(from), have.digest);
    if (lacks_carried() && have.digest == *carry_ && !std::exchange(asked_carry_, true)) {
      carry_wait_.begin({step_, 0}, ProgressWait::kLeast, now);
      carry_from_ = place_.index_of(from);
      post_.send(from, WantMessage{have.step, kAllParts});
    }
    if (differs(have) && !have.answers) {
      // This node's own word may have been lost, and one that has all it needs does not repeat it.
      post_.send(from, this->have(have.step, held_->digest, true));
    }
  } else if (const auto digest = log_.digest(have.step);
             digest && !have.answers && setup_.rules.answers_have) {
    post_.send(from, this->have(have.step, *digest, true));
  }
}

Result<std::optional<WholeMean>> EpochSteps::hear_held(const EpochNode& from,
                                                       const PartMessage& part, bool acts,
                                                       bool replays) {
  const bool lacks = acts && lacks_carried() && part.digest == *carry_;
  if (part.step != step_ + 1 || (!replays && !lacks) ||
      !reducer_.decodes(part.encoding, part.part, part.parts)) {
    return std::optional<WholeMean>();
  }
  std::optional<WholeMean> whole = parts_.add(from, part);
  if (!whole) {
    return whole;
  }
  if (digest(whole->mean) != whole->digest) {
    asked_carry_ = false;
    return Status(Fault::unexpected,
                  fmt::format("step {}: the run's mean has another digest here: this node has "
                              "other rates or settings of the step, or memory is damaged",
                              part.step));
  }
  if (!replays) {
    hold(*std::exchange(whole, std::nullopt));
  }
  return whole;
}

void EpochSteps::answer(const EpochNode& from, const WantMessage& want, bool gives_held,
                        bool gives_made) {
  const auto work = works_.find(want.step);
  if (const StepMean* mean = log_.find(want.step)) {
    post_.send_mean(from, {*mean, *log_.digest(want.step)}, want.part);
  } else if (held_ && want.step == held_->mean.step && gives_held) {
    post_.send_mean(from, *held_, want.part);
  } else if (gives_made && work != works_.end() && work->second.made() &&
             want.part == place_.index) {
    post_.send(from, made_part(want.step, *work->second.made()));
  }
}

// -- from the gradient to the commit --------------------------------------------------------------

bool EpochSteps::take_gradient(std::span<const float> gradient) {
  gradient_.resize(gradient.size());
  has_gradient_ = host_ops().combine({{1, gradient}}, gradient_) && is_moderate(gradient_);
  return has_gradient_;
}

bool EpochSteps::take_part(std::size_t first, std::span<const float> values) {
  gradient_.resize(setup_.parameters.size());
  const auto taken = std::span(gradient_).subspan(first, values.size());
  if (!host_ops().combine({{1, values}}, taken) || !is_moderate(taken)) {
    return false;
  }
  parts_given_.add(first, values.size());
  return true;
}

bool EpochSteps::take_parts() {
  if (parts_given_.elements() < setup_.parameters.size()) {
    return false;
  }
  parts_given_.clear();
  has_gradient_ = true;
  return true;
}

Result<std::optional<WholeMean>> EpochSteps::advance(EpochTime now, bool has_room) {
  if (Status status = push(now); !status.ok()) {
    return status;
  }
  if (Status status = make(now); !status.ok()) {
    return status;
  }
  if (has_room) {
    complete();
  }
  return committed();
}

bool EpochSteps::is_given(std::size_t chunk) const {
  if (has_gradient_ || parts_given_.empty()) {
    return has_gradient_;
  }
  // With the last part the rest waits for the offer: a step whose mean has all of a gradient must
  // not be committed before that, as the gradient would be taken for one that came too late.
  if (parts_given_.elements() == gradient_.size()) {
    return false;
  }
  const Chunk part =
      chunk_of(gradient_.size(), static_cast<int>(place_.members.size()), static_cast<int>(chunk));
  return setup_.rules.sends_what_is_given ? parts_given_.cover(part.offset, part.size)
                                          : parts_given_.overlap(part.offset, part.size);
}

Status EpochSteps::push(EpochTime now) {
  StepWork& work = works_[step_ + 1];
  if (carries() || work.pushed() || place_.members.size() < setup_.least) {
    return {};
  }
  for (std::size_t k = 0; k < place_.members.size(); ++k) {
    const auto chunk = static_cast<std::uint16_t>(k);
    if (work.sent(chunk) || !is_given(k)) {
      continue;
    }
    if (Status status = reducer_.encode(place(), k, gradient_); !status.ok()) {
      return status;
    }
    work.note_sent(chunk);
    if (k == place_.index) {
      work.add_chunk(chunk, reducer_.encoding(k));
      work.chunk_came(place_.members.size(), now);
    } else {
      post_.send(place_.members[k], ChunkMessage{step_ + 1, chunk, reducer_.encoding(k)});
    }
  }
  if (has_gradient_) {
    work.note_pushed(now);
  }
  return {};
}

Status EpochSteps::make(EpochTime now) {
  StepWork& work = works_[step_ + 1];
  if (carries() || !work.can_make(place_.members.size(), setup_.grace, now)) {
    return {};
  }
  auto made = reducer_.make(place(), work.chunks());
  if (!made) {
    return made.status();
  }
  work.make(own(), *std::move(made));
  post_.send_to_voters(made_part(step_ + 1, *work.made()));
  return {};
}

void EpochSteps::complete() {
  if (held_ || carries()) {
    return;
  }
  if (auto mean = works_[step_ + 1].mean(step_ + 1, place_.members.size())) {
    const EpochDigest digest = this->digest(*mean);
    hold({*std::move(mean), digest});
  }
}

void EpochSteps::hold(WholeMean whole) {
  held_ = std::move(whole);
  works_[step_ + 1].note_have(own(), held_->digest);
  const HaveMessage said = have(step_ + 1, held_->digest, false);
  equality_.note(own(), said.model);
  post_.send_to_voters(said);
}

Result<std::optional<WholeMean>> EpochSteps::committed() {
  if (!held_) {
    return std::optional<WholeMean>();
  }
  const auto& haves = works_[step_ + 1].haves();
  for (const auto& [place, digest] : haves) {
    if (digest != held_->digest) {
      return std::optional<WholeMean>();  // who has said it is put out, or the run ends
    }
  }
  return setup_.rules.commits(haves.size(), place_.members.size())
             ? std::exchange(held_, std::nullopt)
             : std::nullopt;
}

bool EpochSteps::differs(const HaveMessage& have) const {
  if (!held_ || held_->mean.step != have.step) {
    return false;
  }
  const ModelClaim own = model_.claim();
  return have.digest != held_->digest ||
         (have.model.step == own.step && have.model.digest != own.digest);
}

std::uint64_t EpochSteps::unequal() const {
  const auto work = works_.find(step_ + 1);
  const std::size_t members = place_.members.size();
  return equality_.unequal(members) |
         (work == works_.end() ? 0 : judge(work->second.haves(), members).unequal);
}

Status EpochSteps::tie() const {
  const std::size_t members = place_.members.size();
  if (held_ && judge(works_.at(step_ + 1).haves(), members).tie) {
    return {Fault::unexpected,
            fmt::format("step {}: the mean has no digest that more than half of the members have: "
                        "{}; their rates or settings of the step differ, or memory is damaged; "
                        "nobody has applied it: compare the settings of these nodes, and start "
                        "them again",
                        step_ + 1, words_of(works_.at(step_ + 1).haves(), place_))};
  }
  if (const auto step = equality_.tie(members, own())) {
    return {Fault::unexpected,
            fmt::format("step {}: the model has no digest that more than half of the members "
                        "have: {}; nobody can tell which is right: a processor or memory fails, or "
                        "these nodes have different builds or machines that round differently; "
                        "test them, and start again those that are sound",
                        *step, words_of(equality_.said(*step), place_))};
  }
  return {};
}

std::vector<std::uint16_t> EpochSteps::absent(const WholeMean& whole) const {
  std::vector<std::uint16_t> places;
  if (carries() || whole.mean.parts.size() != place_.members.size()) {
    return places;
  }
  for (std::size_t k = 0; k < place_.members.size(); ++k) {
    const auto place = static_cast<std::uint16_t>(k);
    const auto lacks = [&](const MeanPart& part) {
      return !std::ranges::binary_search(part.who, place);
    };
    if (std::ranges::any_of(whole.mean.parts, lacks)) {
      places.push_back(place);
    }
  }
  return places;
}

std::optional<EpochOutcome> EpochSteps::commit(const WholeMean& whole) {
  const bool offered = has_gradient();
  const bool counted = reducer_.commit(whole.mean, offered);
  carry_.reset();
  drop_gradient();
  ++step_;
  log_.add(whole.mean, whole.digest);
  works_.erase(works_.begin(), works_.upper_bound(step_));
  parts_.clear();
  return offered ? std::optional(EpochOutcome{step_, !counted}) : std::nullopt;
}

std::optional<WholeMean> EpochSteps::take_kept(Round base) {
  return step_ + 1 == base ? std::exchange(held_, std::nullopt) : std::nullopt;
}

// -- what may be lost -----------------------------------------------------------------------------

void EpochSteps::say_again(EpochTime now) {
  if (lacks_carried()) {
    ask_for_carried(now);
    return;
  }
  const bool chunks = works_[step_ + 1].say_again(now);
  for (std::size_t k = 0; k < place_.members.size(); ++k) {
    say_again(k, chunks);
  }
}

void EpochSteps::ask_for_carried(EpochTime now) {
  if (asked_carry_ && !carry_wait_.ran_out({step_, parts_.count()}, now)) {
    return;  // it is on its way
  }
  std::set<std::size_t> having;
  for (const auto& [place, digest] : works_[step_ + 1].haves()) {
    if (digest == *carry_ && !post_.suspects(place_.members[place])) {
      having.insert(place);
    }
  }
  const WantMessage want{step_ + 1, kAllParts};
  if (having.empty()) {
    post_.send_to_peers(want);  // a leaver may have it
    return;
  }
  const auto next = having.upper_bound(carry_from_);
  carry_from_ = next == having.end() ? *having.begin() : *next;
  if (!std::exchange(asked_carry_, true)) {
    carry_wait_.begin({step_, 0}, ProgressWait::kLeast, now);
  }
  post_.send(place_.members[carry_from_], want);
}

void EpochSteps::say_again(std::size_t place, bool chunks) {
  const StepWork& work = works_[step_ + 1];
  const auto chunk = static_cast<std::uint16_t>(place);
  const EpochNode& member = place_.members[place];
  if (held_) {
    if (!work.haves().contains(chunk)) {
      post_.send(member, have(step_ + 1, held_->digest, false));
    }
  } else if (!work.has_part(chunk) && chunks && work.sent(chunk)) {
    post_.send(member, ChunkMessage{step_ + 1, chunk, reducer_.encoding(place)});
  } else if (!work.has_part(chunk) && !work.pushed() && !carries()) {
    post_.send(member, WantMessage{step_ + 1, chunk});
  }
}

void EpochSteps::catch_up(const EpochNode& member) {
  const std::size_t place = place_.index_of(member);
  if (place < place_.members.size() && member != place_.self && caught_up_.insert(place).second) {
    say_again(place, true);
  }
}

// -- epochs ---------------------------------------------------------------------------------------

void EpochSteps::enter(const EpochValue& value) {
  carry_ = has_applied_carried(value) ? std::nullopt : value.carry;
  if (!carry_) {
    reducer_.begin_epoch();
  }
  works_.clear();
  parts_.clear();
  equality_.clear();
  asked_carry_ = false;
  caught_up_.clear();
  if (auto kept = std::exchange(held_, std::nullopt); kept && carry_ && kept->digest == *carry_) {
    hold(*std::move(kept));
  }
}

bool EpochSteps::begin_anew() {
  const bool dropped = drop_gradient();
  works_.clear();
  equality_.clear();
  held_.reset();
  carry_.reset();
  parts_.clear();
  log_.clear();
  reducer_.clear();
  return dropped;
}

void EpochSteps::restart_at(Round step) {
  step_ = step;
  log_.clear();
  parts_.clear();
}

}  // namespace sotto::sites
