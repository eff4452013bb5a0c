// What operators see of a site, or of a node of a run whose nodes come and go, while a program
// trains a model of its own: a monitor for Prometheus and `sotto status PORT`, scalars for
// TensorBoard, and an audit file (docs/own_models.md).
//
//   sotto::SiteOutputs outputs(settings.outputs, sotto::print_events(stderr));
//   outputs.attach(options);
//   sotto::SiteOptimizer site(options, state_of(settings), x, outputs.listener());
//
// Thread safety: the listener is called as the optimizer calls listeners; all else by one thread.
// Ownership: must outlive the optimizer.
#pragma once

#include <memory>

#include <sotto/base/setting_text.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/nodes/report/site_output_options.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/process/site_options.h>

namespace sotto {

class SiteOutputs {
 public:
  /// `next` receives each event, and those of these outputs; null: nobody does. `spelling`, which
  /// must outlive the object, spells what is said of TensorBoard's folder; null: by its own name.
  /// Throws Error for an address that is not on this host.
  explicit SiteOutputs(SiteOutputOptions options, SiteListener next = {},
                       const Spelling* spelling = nullptr);
  ~SiteOutputs();
  SiteOutputs(const SiteOutputs&) = delete;
  SiteOutputs& operator=(const SiteOutputs&) = delete;

  /// Opens the files, listens, and has the site of these options write to them. The audit file gets
  /// the list of peers in force, and is refused where a roster stands in place of one. Throws Error
  /// for a file that cannot be written, and Shortage for a port that cannot be had.
  void attach(SiteOptions& options);
  /// As above. An audit file is refused: such a run has no list of peers.
  void attach(ElasticOptions& options);
  /// The listener to give to the optimizer.
  SiteListener listener();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sotto
