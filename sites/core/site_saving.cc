// The durable state of a site.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/state_io.h>
#include <sotto/sites/core/site.h>

namespace sotto::sites {
namespace {

constexpr std::string_view kFormat = "site 2";
/// Peers that a state can hold, those that left the list included.
constexpr std::uint32_t kMostSavedPeers = 4096;

/// Where the first `count` peers are when one was added to them.
std::vector<std::size_t> places(std::size_t count) {
  std::vector<std::size_t> from(count, kNobody);
  std::iota(from.begin(), from.end() - 1, std::size_t{0});
  return from;
}

}  // namespace

std::string_view state_format() { return kFormat; }

std::string format_of_state(std::span<const std::byte> state) {
  ByteReader in(state);
  const std::string format = in.read_string(kFormat.size() + 8);
  return in.failed() ? std::string() : printable(format);
}

void Site::save(ByteBuffer& out) const {
  check(self_.phase != RoundPhase::training || steps_ == 0,
        "a site is not saved between step and offer");
  out.write_string(kFormat);
  out.append(self_.setup.agreement);
  out.write(std::uint64_t{self_.setup.parameters.size()});
  self_.save(out);
  mixing_->save(out);
  if (outer_) {
    outer_->save(out);
  }
  out.write(static_cast<std::uint32_t>(peers_.size()));
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    out.write_string(peers_[k].entry.name);
    peers_[k].save(out);
    mixing_->save_peer(k, out);
  }
  peers_.save_former(out);
}

Status Site::load(ByteReader& in) {
  check(self_.phase == RoundPhase::waiting && !self_.loaded, "a site loads before anything else");
  Status status = load_self(in);
  if (status.ok()) {
    status = mixing_->load(in);
  }
  if (status.ok() && outer_) {
    status = outer_->load(in);
  }
  if (status.ok()) {
    status = load_peers(in);
  }
  if (status.ok() && (self_.phase == RoundPhase::waiting) != (mixing_->mass() == 0)) {
    status = {Fault::malformed, "checkpoint has mass without a model, or a model without mass"};
  }
  self_.loaded = true;
  return status.with_context(fmt::format("site {}", self_.setup.name));
}

Status Site::load_self(ByteReader& in) {
  if (Status status = expect_name(in, "a", kFormat); !status.ok()) {
    return status;
  }
  const auto agreement = in.take(self_.setup.agreement.size());
  if (!std::ranges::equal(agreement, self_.setup.agreement)) {
    return {Fault::malformed, "checkpoint of a site with other settings"};
  }
  const auto dimension = in.read<std::uint64_t>();
  if (Status status = self_.load(in); !status.ok()) {
    return status;
  }
  if (dimension != self_.setup.parameters.size()) {
    return {Fault::malformed, "checkpoint of another site, or damaged"};
  }
  return {};
}

Status Site::load_peers(ByteReader& in) {
  // In the order in which they were saved first, so that the mixing takes back its own.
  const std::vector<SitePeer> listed = self_.setup.peers;
  peers_.clear();
  const auto count = in.read<std::uint32_t>();
  if (in.failed() || count > kMostSavedPeers) {
    return {Fault::malformed, "checkpoint has too many peers"};
  }
  for (std::uint32_t k = 0; k < count; ++k) {
    if (Status status = peers_.load_next(in, self_.setup.window, mixing_->max_payload());
        !status.ok()) {
      return status;
    }
    mixing_->rearrange(places(peers_.size()));
    if (Status status = mixing_->load_peer(k, in); !status.ok()) {
      return status.with_context(peers_[k].entry.name);
    }
  }
  if (Status status = peers_.load_former(in, self_.setup.window, mixing_->max_payload());
      !status.ok()) {
    return status;
  }
  if (!in.finished()) {
    return {Fault::malformed, "checkpoint goes on after its end"};
  }
  update_peers(listed);
  return {};
}

}  // namespace sotto::sites
