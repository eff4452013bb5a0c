// The identity of a site: its key, and its line in the list of those that it trusts. Functions that
// read files, and change nothing; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/comm/trust/keys.h>
#include <sotto/comm/trust/security.h>

namespace sotto {

/// What names a site and its files.
struct SiteNames {
  std::string name;    ///< this site's name in the lists of the others
  std::string key;     ///< path of the file of its key
  std::string peers;   ///< path of the list of peers
  std::string listen;  ///< HOST:PORT, or several with spaces between them; empty: as its line says
};

/// The site's key, its list, and its own place in that.
struct SiteIdentity {
  Security security;
  Rank rank = 0;
};

/// The site's own line of its list. Throws Error, of the setting `name` or `peers`, for a list that
/// is none for the site with this key: the key is not in it, or under another name, or there is a
/// peer that neither can dial nor be dialled by.
const TrustedPeer& own_line(const SiteNames& names, const PublicKey& key,
                            const std::vector<TrustedPeer>& lines);

/// Reads key and list. Throws Error for a file that cannot be read, as own_line, and for a list
/// that names nobody else.
SiteIdentity read_site_identity(const SiteNames& names);

}  // namespace sotto
