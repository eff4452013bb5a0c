#include <sotto/optim/federated/push_sum_mixing.h>

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>

namespace sotto::federated {
namespace {

/// Below this, float32 loses what is shared.
constexpr double kLeast = 0x1p-64;
constexpr std::size_t kPushSumHeaderBytes = 2 * sizeof(double);

struct Header {
  double share = 0;
  double mass = 0;
};

Header read_header(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Header header;
  header.share = in.read<double>();
  header.mass = in.read<double>();
  return header;
}

}  // namespace

PushSumMixing::PushSumMixing(MixingSetup setup)
    : setup_(std::move(setup)),
      x_(setup_.parameters.size()),
      pull_(x_.size()),
      error_(x_.size()),
      v_(x_.size()),
      next_(x_.size()) {
  setup_.step_rule->resize(setup_.layout);
}

std::size_t PushSumMixing::max_payload() const {
  return kPushSumHeaderBytes + setup_.compressor->max_bytes(x_.size());
}

void PushSumMixing::begin() {
  mass_ = 1;
  setup_.ops->copy(setup_.parameters, x_);
  setup_.ops->fill(0, pull_);
  setup_.ops->fill(0, error_);
}

void PushSumMixing::give_up() {
  mass_ = 0;
  setup_.ops->fill(0, x_);
  setup_.ops->fill(0, pull_);
  setup_.ops->fill(0, error_);
}

Status PushSumMixing::ratio(std::span<const float> x, std::span<const float> pull, double mass,
                            std::span<float> z) const {
  setup_.ops->copy(pull, z);
  setup_.ops->axpy(1, x, z);
  setup_.ops->scale(static_cast<float>(1 / mass), z);
  return require_finite(*setup_.ops, z, "model x / ω");
}

Status PushSumMixing::step(Round step, std::span<const float> gradient) {
  if (Status status = require_finite(*setup_.ops, gradient, "gradient"); !status) {
    return status;
  }
  if (Status status = setup_.step_rule->direction(step, setup_.parameters, gradient, next_);
      !status) {
    return status;
  }
  setup_.ops->subtract(x_, next_, next_);
  if (Status status = ratio(next_, pull_, mass_, v_); !status) {
    return status;
  }
  std::swap(x_, next_);
  setup_.ops->copy(v_, setup_.parameters);
  return {};
}

Status PushSumMixing::offer(const RandomKey& key, std::size_t degree, std::span<Addressee> to) {
  const auto fair = static_cast<float>(1.0 / static_cast<double>(1 + degree));
  const auto share = static_cast<double>(setup_.consensus_stepsize * fair);
  const double gives = share * static_cast<double>(to.size());
  if (to.empty() || (1 - gives) * mass_ < kLeastKept) {
    return {};
  }
  const Ops& ops = *setup_.ops;
  ops.copy(x_, v_);
  ops.axpy(1, error_, v_);
  if (Status status = require_finite(ops, v_, "compensated model x + δ"); !status) {
    return status;
  }
  const double mass = share * mass_;
  std::vector<std::byte> payload(max_payload());
  ByteWriter header(payload);
  header.write(share);
  header.write(mass);
  payload.resize(
      kPushSumHeaderBytes +
      setup_.compressor->encode_residual(v_, key, std::span(payload).subspan(kPushSumHeaderBytes)));

  // What is given away need not be a float32 value: its two halves make the own loss what the
  // others gain.
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  ops.fill(0, next_);
  for (const float part : {high, low}) {
    const auto encoding = std::span<const std::byte>(payload).subspan(kPushSumHeaderBytes);
    if (Status status = setup_.compressor->decode_add(encoding, -part, next_); !status) {
      return status.with_context("own encoding");
    }
  }
  if (Status status = require_finite(ops, next_, "share given away"); !status) {
    return status;
  }
  std::swap(pull_, next_);
  std::swap(error_, v_);
  mass_ -= mass * static_cast<double>(to.size());
  const auto shared = std::make_shared<const std::vector<std::byte>>(std::move(payload));
  for (Addressee& addressee : to) {
    addressee.payload = shared;
    addressee.mass = mass;
  }
  return {};
}

Status PushSumMixing::check_payload(std::span<const std::byte> payload) const {
  if (payload.size() < kPushSumHeaderBytes || payload.size() > max_payload()) {
    return {Fault::malformed, fmt::format("a share of {} bytes", payload.size())};
  }
  const Header header = read_header(payload);
  if (!std::isfinite(header.share) || !std::isfinite(header.mass)) {
    return {Fault::non_finite, fmt::format("a share {} of mass {}", header.share, header.mass)};
  }
  if (!(header.share >= kLeast && header.share <= 1)) {
    return {Fault::malformed, fmt::format("a share {}, outside {} … 1", header.share, kLeast)};
  }
  if (!(header.mass >= kLeast && header.mass <= setup_.mass_cap)) {
    return {Fault::malformed,
            fmt::format("a mass {}, outside {} … {}", header.mass, kLeast, setup_.mass_cap)};
  }
  return {};
}

Result<double> PushSumMixing::take_in(std::size_t /*peer*/, std::span<const std::byte> payload) {
  const Header header = read_header(payload);
  if (!(mass_ + header.mass <= setup_.mass_cap)) {
    return Status(Fault::malformed, fmt::format("a mass {} on top of {}, more than {} in all",
                                                header.mass, mass_, setup_.mass_cap));
  }
  setup_.ops->copy(pull_, next_);
  if (Status status = setup_.compressor->decode_add(payload.subspan(kPushSumHeaderBytes),
                                                    static_cast<float>(header.share), next_);
      !status) {
    return status;
  }
  const double mass = mass_ + header.mass;
  if (Status status = ratio(x_, next_, mass, v_); !status) {
    return status;
  }
  std::swap(pull_, next_);
  mass_ = mass;
  return header.mass;
}

Status PushSumMixing::mix(std::size_t /*degree*/, std::span<const MixedPeer> /*peers*/) {
  const Ops& ops = *setup_.ops;
  if (Status status = ratio(x_, pull_, mass_, next_); !status) {
    return status;
  }
  ops.axpy(1, x_, pull_);
  std::swap(x_, pull_);
  ops.fill(0, pull_);
  ops.copy(next_, setup_.parameters);
  return {};
}

void PushSumMixing::save(ByteBuffer& out) const {
  out.write(mass_);
  if (mass_ > 0) {
    write_floats(x_, out);
    write_floats(pull_, out);
    write_floats(error_, out);
  } else {
    write_floats(setup_.parameters, out);  // with mass, z follows
  }
  setup_.step_rule->save(out);
  setup_.compressor->save(out);
}

Status PushSumMixing::load(ByteReader& in) {
  mass_ = in.read<double>();
  // A site that has not begun, or gave up, has no mass.
  if (in.failed() || !(mass_ == 0 || (mass_ >= kLeast && mass_ <= setup_.mass_cap))) {
    return {Fault::malformed, "checkpoint has a mass that cannot be"};
  }
  Status status;
  if (mass_ > 0) {
    status = read_floats(in, "x", x_);
    status = status.ok() ? read_floats(in, "pull", pull_) : status;
    status = status.ok() ? read_floats(in, "error", error_) : status;
    status = status.ok() ? mix(0, {}) : status;
  } else {
    status = read_floats(in, "model", setup_.parameters);
  }
  status = status.ok() ? setup_.step_rule->load(in) : status;
  return status.ok() ? setup_.compressor->load(in) : status;
}

}  // namespace sotto::federated
