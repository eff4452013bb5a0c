// Guards a site's model against parcels that spoil it: watches the losses and gradients after each
// round, has the earlier model put back, and tells the operator which peers sent the parcels.
//
// Thread safety: one thread at a time. The site is the caller's and must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include <sotto/base/status.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/process/report/site_teller.h>

namespace sotto {

class SiteGuard {
 public:
  /// Has `teller` tell of what it sees.
  SiteGuard(sites::Site& site, SiteTeller teller) : site_(site), teller_(std::move(teller)) {}

  /// A step failed like this. True: the model was put back, and the round's steps are to be taken
  /// again; else the trouble is the site's own.
  bool put_back(const Status& status);
  /// The loss of the first step after a collect; NaN: it is private.
  void look_at(double loss);

  /// How often a model was put back, and how often the loss jumped.
  std::uint64_t put_backs() const { return put_backs_; }
  std::uint64_t jumps() const { return jumps_; }

 private:
  /// A loss is compared with the largest of so many; too few say nothing.
  static constexpr std::size_t kRemembered = 32;
  static constexpr std::size_t kEnough = 8;
  static constexpr double kJump = 4;
  /// … that the round's parcels may have caused: they moved the model so many times as far as in
  /// the median of the rounds before. The loss of a batch jumps by itself where it is near 0.
  static constexpr double kMoved = 2;

  /// What a round's parcels led to.
  struct Intake {
    double loss = 0;   ///< of the first step after it
    double moved = 0;  ///< distances by which the parcels moved the model, in all
  };

  std::string names_of(const std::vector<sites::Suspect>& suspects) const;

  sites::Site& site_;
  const SiteTeller teller_;
  std::deque<Intake> intakes_;
  std::uint64_t put_backs_ = 0;
  std::uint64_t jumps_ = 0;
};

}  // namespace sotto
