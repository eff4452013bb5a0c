// The payload of a parcel of push-sum: what stands in front of its values, and what no site sends.
//
// Share and mass, two doubles, 2^-64 … 1 and 2^-64 … the cap of all mass; the encoding. A last
// parcel, which is all that its sender had, has the share 2, its mass, and x + p as floats.
//
// A building block of PushSumMixing, not for users. Pure functions and plain values.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>

namespace sotto::sites {

/// Below this, float32 loses what is shared.
inline constexpr double kLeastShared = 0x1p-64;

/// What stands in front of a parcel's encoding.
struct ShareHeader {
  static constexpr std::size_t kBytes = 2 * sizeof(double);

  double share = 0;
  double mass = 0;

  /// The header of a parcel that is all that its sender had.
  static ShareHeader of_last(double mass);
  /// Whether the parcel is all that its sender had, who leaves: x as it is, and no share of it.
  bool is_last() const;
  /// Appends the header to a ByteBuffer, or to a ByteWriter.
  template <typename Out>
  void write(Out& out) const {
    out.write(share);
    out.write(mass);
  }
};

/// The header of a payload that is long enough.
ShareHeader read_header(std::span<const std::byte> payload);

/// What a payload may be.
struct ShareLimits {
  std::size_t dimension = 0;
  std::size_t most_bytes = 0;
  double most_mass = 0;
};

/// Checks a payload as far as that goes without decoding it.
Status check_share(std::span<const std::byte> payload, const ShareLimits& limits);

}  // namespace sotto::sites
