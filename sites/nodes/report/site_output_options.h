// What a site, or a node of a run whose nodes come and go, shows while it runs (SiteOutputs). A
// plain value.
#pragma once

#include <string>

namespace sotto {

/// The outputs of a site; an empty field leaves that output out.
struct SiteOutputOptions {
  std::string monitor{};      ///< [HOST:]PORT of /metrics and /status, on this host
  std::string tensorboard{};  ///< a folder for scalars
  std::string audit{};        ///< a file of who was let in, refused or cut off (AuditLog)
};

}  // namespace sotto
