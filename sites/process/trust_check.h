// Whether the lists of several sites fit together. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sotto/comm/trust/allow_list.h>

namespace sotto {

/// One setting that all sites share, as one of them has it.
struct SharedSetting {
  std::string name;
  std::string value;
  std::string place;  ///< where its file sets it, "site.toml:9"; empty: by default

  auto operator<=>(const SharedSetting&) const = default;
};

/// What is public of one site.
struct SiteView {
  std::string name;
  std::vector<TrustedPeer> lines{};  ///< its list, itself included
  bool observer = false;             ///< it sends to nobody, whatever its list says
  bool secure_sum = false;           ///< it sums in secret, for which all must exchange with all
  std::size_t colluders = 0;         ///< … of which so many may collude
  std::vector<SharedSetting> settings{};
  std::string file{};        ///< its site.toml, for messages
  std::string peers_file{};  ///< its list, likewise
  std::string monitor{};     ///< HOST:PORT; empty: it has none
  /// It listens elsewhere than its own line says, so that the line does not tell its host.
  bool listens_elsewhere = false;
};

/// One thing that does not fit.
struct TrustFinding {
  std::string kind;  ///< "edge", "key", "address", "missing", "settings", "reach", "takes",
                     ///< "gives", "sum", "monitor"
  std::string site;  ///< at which it was seen
  std::string peer;  ///< empty where it concerns the site alone
  std::string text;  ///< what it is
};

/// What a check found, and figures of the graph of edges to which both ends agree.
struct TrustReport {
  std::vector<TrustFinding> findings;
  /// (sender, receiver): places of the sites given, sorted.
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::size_t degree_min = 0;  ///< of senders to one site: the fewest
  std::size_t degree_max = 0;  ///< likewise: the most
};

/// Compares the sites with each other. Throws Error for two sites of one name.
TrustReport check_trust(const std::vector<SiteView>& sites);

}  // namespace sotto
