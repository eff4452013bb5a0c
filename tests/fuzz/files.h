// The targets of trainers/: what lies in folders and is handed around as files. The input is the
// file, but for:
// `section_file`: a byte (odd: checksums are put right wherever the parts say they are), then the
// file. `run_state`: the section of a checkpoint; `privacy_ledger`: the file without its digest,
// which is put behind it.
// `audit`: a byte (odd: a digest is put before each line), then the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sotto_fuzz {

void read_section_file(std::string_view name, std::span<const std::byte> input);
void read_audit(std::string_view name, std::span<const std::byte> input);
void read_run(std::string_view name, std::span<const std::byte> input);
void read_ledger(std::string_view name, std::span<const std::byte> input);
void read_model(std::string_view name, std::span<const std::byte> input);
void read_data(std::string_view name, std::span<const std::byte> input);

/// What `section_file` takes: a checkpoint, or a site's state.
std::vector<std::byte> example_section_file(bool site);
std::vector<std::byte> example_audit();
std::vector<std::byte> example_run_state();
std::vector<std::byte> example_ledger();
/// What `model_file` takes: the tensors "w" and "b".
std::vector<std::byte> example_model();

}  // namespace sotto_fuzz
