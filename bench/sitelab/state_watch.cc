#include "state_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace sotto::sitelab {

StateWatch::StateWatch(int sites)
    : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      watches_(static_cast<std::size_t>(sites), -1) {
  if (!inotify_) {
    throw std::runtime_error(fmt::format("files cannot be watched: {}", std::strerror(errno)));
  }
}

void StateWatch::follow(Rank site, const std::string& folder) {
  int& watch = watches_[static_cast<std::size_t>(site)];
  if (watch < 0) {
    watch =
        ::inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  }
}

void StateWatch::forget(Rank site) {
  int& watch = watches_[static_cast<std::size_t>(site)];
  if (watch >= 0) {
    ::inotify_rm_watch(inotify_.get(), std::exchange(watch, -1));
  }
}

void StateWatch::tell(const Handler& handler) {
  alignas(inotify_event) std::array<char, 16384> buffer{};
  ssize_t got = 0;
  while ((got = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof event);
      const std::string_view name(event.len > 0 ? at + sizeof event : "");
      at += sizeof event + event.len;
      const auto watch = std::ranges::find(watches_, event.wd);
      if (event.wd < 0 || watch == watches_.end() || !name.starts_with("state.")) {
        continue;
      }
      const auto site = static_cast<Rank>(watch - watches_.begin());
      if ((event.mask & IN_CREATE) != 0 && name.ends_with(".new")) {
        handler(site, Change::begun, name);
      } else if ((event.mask & IN_MOVED_TO) != 0) {
        handler(site, Change::in_place, name);
      }
    }
  }
}

void StateWatch::wait(int milliseconds) const {
  pollfd written = {.fd = inotify_.get(), .events = POLLIN, .revents = 0};
  ::poll(&written, 1, milliseconds);
}

}  // namespace sotto::sitelab
