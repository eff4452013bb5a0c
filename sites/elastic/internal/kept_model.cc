#include "kept_model.h"

#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;

}  // namespace

KeptModel::KeptModel(SiteFolder* folder, const ElasticOptions& options,
                     const ParameterLayout& layout, sites::EpochLocalSteps* local,
                     ElasticReporter& reporter)
    : folder_(folder),
      options_(options),
      layout_(layout),
      local_(local),
      reporter_(reporter),
      writer_(folder, options, layout) {}

void KeptModel::read(sites::EpochMember& trial) {
  if (folder_ == nullptr) {
    return;
  }
  // A file may be whole, and what was written to it not sound.
  for (bool sound = false; !sound;) {
    next_ = read_elastic_state(*folder_, options_, layout_, warning_);
    Status taken = next_ ? trial.begin_from(next_->step, next_->model) : Status();
    if (taken.ok() && next_ && local_ != nullptr) {
      taken = load_local_rule(next_->local_rule);
    }
    sound = taken.ok();
    if (!sound && taken.fault() != Fault::malformed) {  // as a rule of the caller's may fail
      throw Error("state", taken.message());
    }
    if (!sound) {
      set_aside(*folder_, *next_, taken.message(), warning_);
    }
  }
  if (next_) {
    writer_.loaded(next_->step);
  }
}

Status KeptModel::load_local_rule(std::span<const std::byte> remembered) {
  ByteBuffer first;  // a rule that refuses what it loads may have taken a part of it
  local_->save(first);
  ByteReader in(remembered);
  Status status = local_->load(in);
  if (status.ok() && !in.finished()) {
    status = {Fault::malformed, "what the rule of local steps remembers is too long"};
  }
  if (!status.ok()) {
    ByteReader back(first.bytes());
    const Status restored = local_->load(back);
    return restored.ok() ? status : restored;
  }
  return status;
}

void KeptModel::keep_of(const sites::EpochMember& member) {
  if (const Round step = member.applied(); step > 0 && member.has_sound_model()) {
    ByteBuffer model;
    member.save(model);
    next_ = {.step = step, .run = member.history(), .model = std::move(model).take()};
  }
}

void KeptModel::tell() const {
  if (!warning_.empty()) {
    reporter_.tell(Level::warning, SiteEvent::Kind::state_damaged, warning_);
  }
  if (next_) {
    reporter_.tell(Level::info, SiteEvent::Kind::started,
                   fmt::format("has a model of step {} in its folder", next_->step));
  }
}

void KeptModel::write(sites::EpochMember* member, bool now) {
  Status status;
  if (member != nullptr && !member->has_sound_model()) {
    return;  // what is in the folder is of before
  }
  if (member != nullptr) {
    status = now ? writer_.save(*member, local_) : writer_.keep(*member, local_);
  } else if (next_ && now) {
    status = writer_.save(*next_, local_);
  }
  if (!status.ok() && !std::exchange(told_unsaved_, true)) {
    reporter_.tell(Level::warning, SiteEvent::Kind::state_not_saved,
                   fmt::format("the model is not written any more: {}", status.message()));
  }
}

}  // namespace sotto
