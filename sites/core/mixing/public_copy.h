// A public copy x̂ of a site's model: the model, the chain of changes that made it, and the
// payloads that change it or hand it over whole.
//
// Payload: version of x̂ before the change u64, lowest bit 0, and number of changes before it u64;
// the encoding. Or the version with lowest bit 1 and the changes in it; x̂, d floats.
//
// A building block of GossipMixing, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/optim/exchange/replica.h>
#include <sotto/sites/core/parcel_stream.h>

namespace sotto::sites {

/// What stands in front of a change of a public copy, or of a whole one.
struct CopyHeader {
  static constexpr std::size_t kBytes = 2 * sizeof(std::uint64_t);

  std::uint64_t version = 0;
  std::uint64_t changes = 0;
  bool whole = false;  ///< the copy follows, and else a change of it

  bool operator==(const CopyHeader&) const = default;
};

/// The header of a payload; the reader fails where there is none.
CopyHeader read_copy_header(ByteReader& in);
/// Writes a header, of kBytes.
void write_copy_header(const CopyHeader& header, std::span<std::byte> out);
/// Fault::malformed for a payload that no site sends whose payloads have at most `most` bytes.
Status check_copy_payload(std::span<const std::byte> payload, std::size_t dimension,
                          std::size_t most);

class PublicCopy {
 public:
  /// Empty: the copy is not held.
  std::vector<float> model;

  bool held() const { return !model.empty(); }
  /// The version; 0 where there is none.
  std::uint64_t version() const { return version_.chain(); }
  /// The header of the next change.
  CopyHeader before() const;
  /// `model` is what it was with this change, whose header was before().
  void changed(const CopyHeader& header, std::span<const std::byte> encoding);
  /// `model` came whole, with this header.
  void came(const CopyHeader& header);
  /// `model` is where all begins.
  void begin() { came({}); }
  /// The copy as a payload.
  Payload whole() const;

  /// Appends the copy, and whether it is held.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in, std::size_t dimension);

 private:
  ModelVersion version_;
  std::uint64_t changes_ = 0;
};

}  // namespace sotto::sites
