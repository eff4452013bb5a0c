#include <sotto/sites/process/trust/site_identity.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {

const TrustedPeer& own_line(const SiteNames& names, const PublicKey& key,
                            const std::vector<TrustedPeer>& lines) {
  const auto own =
      std::ranges::find_if(lines, [&](const TrustedPeer& line) { return line.holds(key); });
  if (own == lines.end()) {
    refuse("peers", names.peers,
           fmt::format("no line has this site's key, {}; the list names the site itself too",
                       key.text()));
  }
  if (own->name != names.name) {
    refuse("name", names.name,
           fmt::format("{} calls the site with this key '{}'", names.peers, own->name));
  }
  const bool listens = !names.listen.empty() || !own->address.empty();
  for (const TrustedPeer& line : lines) {
    const bool met = line.rank != own->rank && (line.may_send || line.send_to);
    if (met && line.address.empty() && !listens) {
      refuse("peers", names.peers,
             fmt::format("the line of {0} has no address, and this site listens nowhere, so that "
                         "neither can dial the other: give an address of {0}, `listen`, or an "
                         "address of this site",
                         line.name));
    }
  }
  return *own;
}

SiteIdentity read_site_identity(const SiteNames& names) {
  const KeyPair keys = read_key_file(names.key);
  auto lines = read_peers_file(names.peers, PeerNumbers::of_names);
  const Rank rank = own_line(names, keys.public_key, lines).rank;
  if (lines.size() < 2) {  // later it may: whoever was listed is revoked then
    refuse("peers", names.peers, "it names nobody but this site");
  }
  return {.security = {keys, std::make_shared<AllowList>(std::move(lines))}, .rank = rank};
}

}  // namespace sotto
