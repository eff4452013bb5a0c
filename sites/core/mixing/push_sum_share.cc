#include <sotto/sites/core/mixing/push_sum_share.h>

#include <cmath>

#include <fmt/format.h>

namespace sotto::sites {
namespace {

/// In place of a share, of a parcel that is all that its sender had.
constexpr double kShareOfLast = 2;

}  // namespace

ShareHeader ShareHeader::of_last(double mass) { return {.share = kShareOfLast, .mass = mass}; }

bool ShareHeader::is_last() const { return share == kShareOfLast; }

ShareHeader read_header(std::span<const std::byte> payload) {
  ByteReader in(payload);
  ShareHeader header;
  header.share = in.read<double>();
  header.mass = in.read<double>();
  return header;
}

Status check_share(std::span<const std::byte> payload, const ShareLimits& limits) {
  if (payload.size() < ShareHeader::kBytes || payload.size() > limits.most_bytes) {
    return {Fault::malformed, fmt::format("a share of {} bytes", payload.size())};
  }
  const ShareHeader header = read_header(payload);
  if (!std::isfinite(header.share) || !std::isfinite(header.mass)) {
    return {Fault::non_finite, fmt::format("a share {} of mass {}", header.share, header.mass)};
  }
  const bool last = header.is_last();
  if (last && payload.size() != ShareHeader::kBytes + limits.dimension * sizeof(float)) {
    return {Fault::malformed, fmt::format("a last parcel of {} bytes", payload.size())};
  }
  if (!last && !(header.share >= kLeastShared && header.share <= 1)) {
    return {Fault::malformed,
            fmt::format("a share {}, outside {} … 1", header.share, kLeastShared)};
  }
  if (!(header.mass >= kLeastShared && header.mass <= limits.most_mass)) {
    return {Fault::malformed,
            fmt::format("a mass {}, outside {} … {}", header.mass, kLeastShared, limits.most_mass)};
  }
  return {};
}

}  // namespace sotto::sites
