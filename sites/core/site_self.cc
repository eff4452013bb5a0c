#include <sotto/sites/core/site_self.h>

#include <cmath>

#include <fmt/format.h>

namespace sotto::sites {

Status SiteSelf::here(const Status& status) const {
  return status.with_context(fmt::format("site {}, round {}", setup.name, round));
}

void SiteSelf::save(ByteBuffer& out) const {
  out.write(incarnation);
  past.save(out);
  out.write(phase == RoundPhase::offered ? offered : round);
  out.write(offered);
  out.write(static_cast<std::uint8_t>(phase != RoundPhase::waiting));
  out.write(static_cast<std::uint8_t>(trained && phase != RoundPhase::waiting));
  out.write(minted);
  out.write(written_off);
  out.write(resets);
}

Status SiteSelf::load(ByteReader& in) {
  incarnation = in.read<Incarnation>();
  if (Status status = past.load(in); !status.ok()) {
    return status;
  }
  round = in.read<Round>();
  offered = in.read<Round>();
  const auto begun = in.read<std::uint8_t>();
  const auto has_trained = in.read<std::uint8_t>();
  minted = in.read<double>();
  written_off = in.read<double>();
  resets = in.read<std::uint64_t>();
  const bool masses =
      std::isfinite(minted) && minted >= 0 && std::isfinite(written_off) && written_off >= 0;
  if (in.failed() || incarnation == 0 || round > kMostCount || offered > round || begun > 1 ||
      has_trained > begun || !masses) {
    return {Fault::malformed, "checkpoint of another site, or damaged"};
  }
  phase = begun == 1 ? RoundPhase::training : RoundPhase::waiting;
  trained = has_trained == 1;
  return {};
}

}  // namespace sotto::sites
