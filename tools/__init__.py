# SPDX-License-Identifier: Apache-2.0
"""Helpers of ./dev; the tests use tools.services."""
