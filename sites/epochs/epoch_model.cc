#include <sotto/sites/epochs/epoch_model.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/byte_window.h>
#include <sotto/base/xxh3.h>
#include <sotto/kernels/ops.h>

namespace sotto::sites {

EpochModel::EpochModel(std::span<float> parameters, const ParameterLayout& layout,
                       std::unique_ptr<StepRule> rule)
    : x_(parameters), rule_(std::move(rule)), next_(rule_->moves_in_place() ? 0 : x_.size()) {
  rule_->resize(complete_layout(layout, x_.size()));
}

ModelClaim EpochModel::claim() const {
  if (!digest_) {
    digest_ = xxh3_128(std::as_bytes(std::span<const float>(x_)));
  }
  return {step_, *digest_};
}

Status EpochModel::apply(std::span<const float> mean) {
  digest_.reset();
  const std::span<float> next = rule_->moves_in_place() ? x_ : std::span<float>(next_);
  // Rounds count from 0: what the rule does in step t is that of round t − 1.
  Status status = rule_->next_model(step_, x_, mean, next, host_ops());
  if (status.ok() && host_ops().count_non_finite(next).count > 0) {
    status = {
        Fault::non_finite,
        "the updated model has elements that are not finite; lower the learning rate, or look "
        "at the data"};
  }
  if (!status.ok()) {
    return status.with_context(fmt::format("step {}", step_ + 1));
  }
  if (next.data() != x_.data()) {
    std::ranges::copy(next, x_.begin());
  }
  ++step_;
  return {};
}

std::size_t EpochModel::snapshot_bytes() const {
  return ByteBuffer::size_of([&](ByteBuffer& counted) { save(counted); });
}

void EpochModel::copy_part(std::size_t first, std::size_t count,
                           std::vector<std::byte>& part) const {
  sotto::copy_part([&](ByteBuffer& out) { save(out); }, first, count, part);
}

LiveState EpochModel::live() const {
  return {.step = step_,
          .bytes = snapshot_bytes(),
          .root = claim().digest,
          .part = [this](std::size_t first, std::size_t count, std::vector<std::byte>& part) {
            copy_part(first, count, part);
          }};
}

LiveState EpochModel::still() const {
  auto whole = std::make_shared<const std::vector<std::byte>>(snapshot());
  LiveState state{.step = step_, .bytes = whole->size(), .root = claim().digest, .part = {}};
  state.part = [whole](std::size_t first, std::size_t count, std::vector<std::byte>& part) {
    const auto cut = std::span(*whole).subspan(first, count);
    part.insert(part.end(), cut.begin(), cut.end());
  };
  return state;
}

std::vector<std::byte> EpochModel::snapshot() const {
  ByteBuffer out;
  out.reserve(snapshot_bytes());
  save(out);
  return std::move(out).take();
}

void EpochModel::save(ByteBuffer& out) const {
  out.write_span(std::span<const float>(x_));
  rule_->save(out);
}

Status EpochModel::restore(Round step, std::span<const std::byte> snapshot) {
  ByteReader in(snapshot);
  std::vector<float> x(x_.size());
  if (!in.read_into(std::span(x))) {
    return {Fault::malformed, "a copy of a model that is too short"};
  }
  if (Status status = rule_->load(in); !status.ok()) {
    return status;
  }
  if (!in.finished() || host_ops().count_non_finite(x).count > 0) {
    return {Fault::malformed, "a copy of a model that is damaged"};
  }
  std::ranges::copy(x, x_.begin());
  digest_.reset();
  step_ = step;
  return {};
}

}  // namespace sotto::sites
