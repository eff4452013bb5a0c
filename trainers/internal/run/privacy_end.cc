#include "privacy_end.h"

#include <algorithm>

#include <sotto/base/bytes.h>

namespace sotto::internal {

Result<Round> agree_on_privacy_end(const Optimizer& optimizer, StoreCollectives& collectives,
                                   Round rounds) {
  const auto privacy = optimizer.privacy();
  if (!privacy || !optimizer.options().privacy->epsilon) {
    return rounds;
  }
  ByteBuffer mine;
  mine.write(optimizer.round() + privacy->left);
  const auto all = collectives.gather("privacy", mine.bytes());
  if (!all.ok()) {
    return all.status();
  }
  Round end = rounds;
  for (const auto& bytes : *all) {
    end = std::min(end, ByteReader(bytes).read<Round>());
  }
  ByteBuffer decided;
  decided.write(end);
  const auto answer = collectives.broadcast("privacy-end", decided.bytes());
  if (!answer.ok()) {
    return answer.status();
  }
  end = ByteReader(*answer).read<Round>();
  return end < optimizer.round()
             ? Result<Round>(Status(Fault::malformed,
                                    "the round at which the privacy budget is spent has passed"))
             : end;
}

}  // namespace sotto::internal
