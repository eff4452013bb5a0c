// What real sites write into the folders of their states, seen as it happens (inotify).
//
// One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/ids.h>

namespace sotto::sitelab {

class StateWatch {
 public:
  enum class Change {
    begun,    ///< the file of a new state has been made, and has another name yet
    in_place  ///< a new state stands under its name
  };
  using Handler = std::function<void(Rank site, Change change, std::string_view name)>;

  /// Throws std::runtime_error where the system watches nothing more.
  explicit StateWatch(int sites);

  /// From now on, changes in this folder are the site's, unless another one is followed for it.
  void follow(Rank site, const std::string& folder);
  /// Follows nothing for the site: what lies in its folder is about to be changed by others.
  void forget(Rank site);
  /// Hands on what has happened since. The handler may forget sites and ask for more changes.
  void tell(const Handler& handler);
  /// Waits until something has happened, for so many milliseconds at most.
  void wait(int milliseconds) const;

 private:
  FileDescriptor inotify_;
  std::vector<int> watches_;  ///< by site; −1: none
};

}  // namespace sotto::sitelab
