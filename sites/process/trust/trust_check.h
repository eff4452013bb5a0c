// Whether the lists of several sites fit together. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/comm/trust/allow_list.h>

namespace sotto {

/// One setting that all sites share, as one of them has it.
struct SharedSetting {
  std::string name;
  std::string value;
  std::string place;  ///< place in its file, as "site.toml:9"; empty: it is the default

  auto operator<=>(const SharedSetting&) const = default;
};

/// What is public of one site.
struct SiteView {
  std::string name;
  std::vector<TrustedPeer> lines{};  ///< lines of the site's list, its own included
  bool observer = false;             ///< whether it sends to nobody, whatever its list says
  bool secure_sum = false;           ///< whether it sums in secret: all must exchange with all
  std::size_t colluders = 0;         ///< sites that may collude against a secret sum
  std::vector<SharedSetting> settings{};
  std::string file{};        ///< path of its site.toml, for messages
  std::string peers_file{};  ///< path of its list, for messages
  std::string monitor{};     ///< HOST:PORT of its monitor; empty: it has none
  /// It listens elsewhere than its own line says, so that the line does not tell its host.
  bool listens_elsewhere = false;
};

/// One thing that does not fit.
struct TrustFinding {
  /// What does not fit.
  enum class Kind : std::uint8_t {
    edge,      ///< one end sends what the other one does not take
    key,       ///< a list has another key of a site than that site
    address,   ///< … another address
    missing,   ///< a list has no line for a site that lists it
    settings,  ///< a setting that sites share differs
    monitor,   ///< two would listen at one port
    reach,     ///< nothing of one site reaches another one
    gives,     ///< a site gives, and nothing comes back
    takes,     ///< a site only takes, and does not say so
    drained,   ///< push-sum: a site gives more than comes back, which is worth a look and does fit
    sum,       ///< a site cannot sum in secret with the others
    own,       ///< a site's own files do not do what they seem to
    data,      ///< the loader left out some of the own data, which is worth a look and does fit
  };
  Kind kind;
  std::string site;  ///< site at which the finding was made
  std::string peer;  ///< peer that it concerns; empty: the site alone
  std::string text;  ///< description for people
};

/// The name in tables and JSON: "edge".
std::string_view name_of(TrustFinding::Kind kind);

/// Whether a finding of this kind is worth a look, while all fits together.
constexpr bool is_remark(TrustFinding::Kind kind) {
  return kind == TrustFinding::Kind::drained || kind == TrustFinding::Kind::data;
}

/// What a check found, and figures of the graph of edges to which both ends agree.
struct TrustReport {
  std::vector<TrustFinding> findings;
  /// (sender, receiver): places of the sites given, sorted.
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::size_t degree_min = 0;  ///< fewest senders to one site
  std::size_t degree_max = 0;  ///< most senders to one site
};

/// Compares the sites with each other. Throws Error for two sites of one name.
TrustReport check_trust(const std::vector<SiteView>& sites);

}  // namespace sotto
