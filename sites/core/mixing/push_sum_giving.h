// The parcels that a site makes with push-sum: C(v), v = x + δ, and what its compressor withheld,
// δ.
//
// A building block of PushSumMixing, not for users. One thread at a time. Memory: a float a
// parameter, and payloads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/byte_pool.h>
#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/sites/core/mixing/push_sum_model.h>
#include <sotto/sites/core/mixing/push_sum_share.h>
#include <sotto/sites/core/parcel_stream.h>

namespace sotto::sites {

class PushSumGiving {
 public:
  /// Both outlive the object.
  PushSumGiving(PushSumModel& model, Compressor& compressor);

  /// Nothing is withheld any more.
  void clear();
  /// The payload of parcels with this header, and p ← − gives C(v). On a fault δ stays, and the
  /// model's p, where it had none, is none.
  Result<Payload> make(const RandomKey& key, const ShareHeader& header, double gives);

  /// Appends δ.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in);

 private:
  /// A payload of the floats of x, which leaves no error, and p ← − gives x.
  Result<std::vector<std::byte>> as_is(const ShareHeader& header, double gives);
  /// A payload of C(v); δ ← v − C(v), and p ← − gives C(v).
  Result<std::vector<std::byte>> encoded(const RandomKey& key, const ShareHeader& header,
                                         double gives);
  /// C(v) in `out`, v = x + δ, and the model's values() ← v − C(v).
  Result<std::span<const std::byte>> encode(const RandomKey& key, std::span<std::byte> out);
  /// p ← − gives C.
  Status give(std::span<const std::byte> encoding, double gives);

  PushSumModel& model_;
  Compressor& compressor_;
  bool exact_;                // parcels have the floats of x as they are, and δ is 0
  std::vector<float> error_;  // δ
  BytePool pool_;             // of payloads
};

}  // namespace sotto::sites
