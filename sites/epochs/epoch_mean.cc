#include <sotto/sites/epochs/epoch_mean.h>

#include <cstdint>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/xxh3.h>

namespace sotto::sites {

EpochDigest digest_of(const StepMean& mean, double learning_rate, std::uint64_t settings) {
  ByteBuffer all;
  all.write(mean.step);
  all.write(learning_rate);
  all.write(settings);
  for (const MeanPart& part : mean.parts) {
    all.write(std::uint64_t{part.who.size()});
    all.write_span(std::span<const std::uint16_t>(part.who));
    const EpochDigest bytes = xxh3_128(part.encoding);
    all.write_span(std::span<const std::uint64_t>(bytes));
  }
  return xxh3_128(all.bytes());
}

}  // namespace sotto::sites
