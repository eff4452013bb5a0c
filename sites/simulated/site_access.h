// What goes into a simulated site and what comes out of it: each way is a function, which a test of
// the checker replaces by one that does wrong.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/site.h>

namespace sotto {

/// The ways into one site and out of it. This class does what the site does.
///
/// Ownership: the site is the caller's, and outlives this object.
class SiteAccess {
 public:
  /// For this site.
  explicit SiteAccess(sites::Site& site) : site_(site) {}
  virtual ~SiteAccess() = default;
  SiteAccess(const SiteAccess&) = delete;
  SiteAccess& operator=(const SiteAccess&) = delete;

  /// Site::receive
  virtual Status receive(std::size_t peer, std::span<const std::byte> message) {
    return site_.receive(peer, SharedBytes::copy(message));
  }
  /// Site::try_begin
  virtual bool try_begin(bool waited) { return site_.try_begin(waited); }
  /// Site::released
  virtual std::vector<sites::Released> released() { return site_.released(); }
  /// Site::save
  virtual void save(ByteBuffer& out) { site_.save(out); }

 protected:
  /// The site itself.
  sites::Site& site() { return site_; }

 private:
  sites::Site& site_;
};

}  // namespace sotto
